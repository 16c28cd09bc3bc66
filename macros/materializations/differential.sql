{#
  Keeps a model up to date by computing only what its inputs' changes imply.

  The relation is a view over the stored collection, <relation>__changes its diff log. The engine writes both.
#}
{% materialization differential, adapter='differential', supported_languages=['sql'] %}
  {%- set target = api.Relation.create(identifier=model['alias'], schema=schema, database=database, type='view') -%}
  {#- dbt's own look at what there is costs as much as a small run. -#}
  {%- set is_view = not dd_is_preview() and adapter.differential_is_view(target.render(), var('dd_time', none)) -%}
  {%- set existing = target if is_view else adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
  {%- set grants = config.get('grants') -%}

  {{ dd_run_hooks(pre_hooks, [false, true]) }}

  {%- if dd_is_preview() -%}
    {{ dd_preview(target, existing, compiled_code) }}
  {%- else -%}
    {%- if grants -%}
      {% do adapter.differential_require_grants(target.render()) %}
    {%- endif -%}
    {%- set dd_time = var('dd_time', none) -%}
    {%- set response = adapter.differential_run(model, target.render(), compiled_code, graph, dd_time, selected_resources) -%}
    {% do store_result('main', response=response) %}
    {%- if existing is not none and existing.type != 'view' -%}
      {#- The engine has put the view in its place. -#}
      {% do adapter.cache_dropped(existing) %}
    {%- endif -%}
    {% do apply_grants(target, grants, should_revoke(existing, full_refresh_mode=False)) %}
  {%- endif -%}

  {{ dd_run_hooks(post_hooks, [true, false]) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}


{# Those inside of a transaction (true) and outside, one kind after the other: Spark has none, but they have an order. #}
{% macro dd_run_hooks(hooks, kinds) %}
  {%- for kind in kinds -%}
    {%- for hook in hooks | selectattr('transaction', 'equalto', kind) -%}
      {%- set rendered = render(hook.get('sql')) | trim -%}
      {%- if rendered -%}
        {% call statement() %} {{ rendered }} {% endcall %}
      {%- endif -%}
    {%- endfor -%}
  {%- endfor -%}
{% endmacro %}


{# Whether rows are limited (--empty, --sample), so that nothing of this run may be stored. #}
{% macro dd_is_preview() %}
  {{ return(flags.EMPTY or invocation_args_dict.get('sample') is not none) }}
{% endmacro %}


{# Compiles the SQL, and makes a relation only where there is none. Stored collections stay as they are. #}
{% macro dd_preview(target, existing, sql) %}
  {%- set found = adapter.differential_preview(model, target.render(), sql, graph) -%}
  {%- if existing is none -%}
    {% call statement() %} create or replace view {{ target }} as {{ found.sql }} {% endcall %}
  {%- else -%}
    {% call statement() %} {{ found.sql }} {% endcall %}
  {%- endif -%}
  {% do store_result('main', response=adapter.differential_previewed(found)) %}
{% endmacro %}
