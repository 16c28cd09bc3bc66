{# A relation's contents as of a time still retained: select * from {{ dd_as_of(ref('m'), '2013-06-01') }} #}
{% macro dd_as_of(relation, time) %}
  {%- if execute -%} ({{ adapter.differential_as_of(relation, time) }}) {%- else -%} {{ relation }} {%- endif -%}
{% endmacro %}
