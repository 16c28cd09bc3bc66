{#
  A model that is the history of a relation's rows: its columns, valid_from, valid_to and is_current.

    select * from {{ dd_history(ref('customers')) }}
    select * from {{ dd_history(ref('customers'), unique_key='id', updated_at='changed_at') }}

  The whole model is one: this sets its config `history`. What selects from a history is another model.
#}
{% macro dd_history(relation, unique_key=none, updated_at=none, names=none) %}
  {%- set settings = {} -%}
  {%- for name, value in [('unique_key', unique_key), ('updated_at', updated_at), ('names', names)] if value -%}
    {%- do settings.update({name: value}) -%}
  {%- endfor -%}
  {{- config(history=settings or true) -}}
  (select * from {{ relation }})
{% endmacro %}
