{# A relation's updates with after < dd_time <= up_to: its columns, dd_time and dd_diff. #}
{% macro dd_changes(relation, after, up_to) %}
  {%- if execute -%} ({{ adapter.differential_changes(relation, after, up_to) }}) {%- else -%} {{ relation }} {%- endif -%}
{% endmacro %}
