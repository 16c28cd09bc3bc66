{# Of a source's files, those that have come since the model was last run; their names tell their order. #}
{% macro arrived() %}
  {%- if is_incremental() -%}
    where _metadata.file_name > (select coalesce(max(loaded_from), '') from {{ this }})
  {%- endif -%}
{% endmacro %}

{# A column's values in the rows of a bronze model that are newer than what this model has. #}
{% macro newer(column, of) %}
  (select {{ column }} from {{ of }} where loaded_from > (select coalesce(max(loaded_from), '') from {{ this }}))
{% endmacro %}
