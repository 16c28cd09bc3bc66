{#
  dbt clone: of a differential model a view of the other environment's relation; anything else as dbt-spark does.

  The next run of the model in this environment builds it here, and its own view takes the place of this one.
#}
{% materialization clone, adapter='differential' %}
  {%- if not defer_relation or config.get('materialized') != 'differential' -%}
    {{ return(materialization_clone_spark()) }}
  {%- endif -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- if existing and not flags.FULL_REFRESH -%}
    {{ log('Relation ' ~ existing ~ ' already exists', info=true) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if this.render() == defer_relation.render() -%}
    {{ log('Target relation and defer relation are the same, skipping clone for relation: ' ~ this, info=True) }}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set target = this.incorporate(type='view') -%}
  {%- if existing and not existing.is_view -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
  {% call statement('main') %} create or replace view {{ target }} as select * from {{ defer_relation }} {% endcall %}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
