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

{# Removes rows whose key the model below no longer has. #}
{% macro remove_gone(key, of, of_key) %}
  merge into {{ this }} t
  using (select a.{{ key }} from {{ this }} a left anti join {{ of }} b on a.{{ key }} = b.{{ of_key }}) gone
  on t.{{ key }} = gone.{{ key }}
  when matched then delete
{% endmacro %}
