{# The time of the run: maintained in a differential model, a literal anywhere else. #}
{% macro dd_now() %}
  {%- if model is defined and model.config.materialized in ('differential', 'snapshot') -%}
    dd_now()
  {%- else -%}
    {{ adapter.differential_now(var('dd_time', none)) if execute else 'current_timestamp()' }}
  {%- endif -%}
{% endmacro %}
