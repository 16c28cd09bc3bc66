{#
  A `table` model's query with the run's time in place of Spark's functions of the clock, so that it can be compared
  with what a differential model holds at that time. It goes by the words alone; strings, comments and quoted names
  are left as they are.
#}
{% macro differential__create_table_as(temporary, relation, compiled_code, language='sql') %}
  {{ return(dbt.spark__create_table_as(temporary, relation, at_run_time(compiled_code), language)) }}
{% endmacro %}

{% macro at_run_time(sql) %}
  {%- set quoted = "'(?:[^'\\\\]|\\\\.|'')*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/" -%}
  {%- set calls = "(?<![\w.`])(?:current_timestamp|now|current_date|curdate|localtimestamp|unix_timestamp)\s*\(\s*\)" -%}
  {%- set bare = "(?<![\w.`])(?:current_timestamp|current_date)(?![\w`(])(?!\s*[(.])" -%}
  {%- set now = adapter.differential_now(var('dd_time', none)) -%}
  {%- set meanings = {
    'current_timestamp': now, 'now': now, 'current_date': 'date(' ~ now ~ ')', 'curdate': 'date(' ~ now ~ ')',
    'localtimestamp': 'cast(' ~ now ~ ' as timestamp_ntz)', 'unix_timestamp': 'unix_timestamp(' ~ now ~ ')'
  } -%}
  {%- set pieces = [] -%}
  {%- for piece in modules.re.split('(?is)(' ~ quoted ~ '|' ~ calls ~ '|' ~ bare ~ ')', sql) -%}
    {%- set name = modules.re.split('[\s(]', piece)[0] | lower -%}
    {%- set after = (pieces[-1] if pieces else '') | lower -%}
    {%- set is_alias = modules.re.search('\\bas\s+$', after) is not none -%}
    {%- do pieces.append(meanings[name] if name in meanings and loop.index0 % 2 and not is_alias else piece) -%}
  {%- endfor -%}
  {{ return(pieces | join('')) }}
{% endmacro %}
