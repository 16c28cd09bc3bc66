{#
  As dbt's; a seed that is loaded already is left as it is, without a session. With --full-refresh it is loaded again.
  Else its rows are computed here and stored. This session makes the table of them, or the next one if none is open and
  only ours read the catalog.
#}
{% materialization seed, adapter='differential' %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set mark = adapter.differential_seed_mark(model) -%}
  {%- set has_more = pre_hooks or post_hooks or config.get('grants') -%}
  {%- if not has_more and not should_full_refresh() and adapter.differential_seed_is_loaded(target, mark) -%}
    {%- set agate_table = load_agate_table() -%}
    {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
    {%- set rows = agate_table.rows | length -%}
    {% call noop_statement('main', 'UNCHANGED ' ~ rows, 'UNCHANGED', rows) %} {% endcall %}
    {{ return({'relations': [target]}) }}
  {%- endif -%}
  {%- if not has_more and differential_seed_is_plain() and adapter.differential_seed_can_be_staged(target) -%}
    {%- set agate_table = load_agate_table() -%}
    {%- set clauses = file_format_clause() ~ ' ' ~ comment_clause() -%}
    {%- set columns = differential_seed_columns(agate_table) -%}
    {%- if adapter.differential_stage_seed(target, agate_table, columns, clauses, mark) -%}
      {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
      {%- set rows = agate_table.rows | length -%}
      {%- set code = 'CREATE' if should_full_refresh() else 'INSERT' -%}
      {% call noop_statement('main', code ~ ' ' ~ rows, code, rows) %} {% endcall %}
      {{ return({'relations': [target]}) }}
    {%- endif -%}
  {%- endif -%}
  {%- set made = materialization_seed_default() -%}
  {% do adapter.differential_seed_loaded(target, mark) %}
  {{ return(made) }}
{% endmaterialization %}

{# Whether nothing but its columns and rows makes the seed's table: it is Parquet in the catalog's own place. #}
{% macro differential_seed_is_plain() %}
  {%- set format = config.get('file_format') or 'parquet' -%}
  {%- set other = [config.get('location_root'), config.get('partition_by'), config.get('clustered_by')] -%}
  {%- set other = other + [config.get('buckets'), config.get('tblproperties'), config.persist_column_docs()] -%}
  {{ return(format == 'parquet' and not (other | select | list)) }}
{% endmacro %}

{# Of each of a seed's columns: its name, also as SQL has it, and its type. #}
{% macro differential_seed_columns(agate_table) %}
  {%- set declared = config.get('column_types', {}) or {} -%}
  {%- set columns = [] -%}
  {%- for name in agate_table.column_names -%}
    {%- set quoted = adapter.quote_seed_column(name | string, config.get('quote_columns', None)) -%}
    {%- set type = declared.get(name, adapter.convert_type(agate_table, loop.index0)) -%}
    {%- do columns.append((name | string, quoted, type | string)) -%}
  {%- endfor -%}
  {{ return(columns) }}
{% endmacro %}
