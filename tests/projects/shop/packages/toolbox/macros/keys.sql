{# One column that identifies a row by several. #}
{% macro surrogate_key(fields) %}{{ return(adapter.dispatch('surrogate_key', 'toolbox')(fields)) }}{% endmacro %}

{% macro default__surrogate_key(fields) %}
  {{ exceptions.raise_compiler_error('spark__surrogate_key is not found') }}
{% endmacro %}

{% macro spark__surrogate_key(fields) %}
  {%- set parts = [] -%}
  {%- for field in fields -%}
    {%- do parts.append("'|'") if not loop.first -%}
    {%- do parts.append("coalesce(cast(" ~ field ~ " as " ~ dbt.type_string() ~ "), '_none_')") -%}
  {%- endfor -%}
  md5({{ dbt.concat(parts) }})
{% endmacro %}
