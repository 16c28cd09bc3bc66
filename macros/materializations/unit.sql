{#
  As dbt's. Where the driver can answer the query, it says the columns as well: no session is opened, and no relation
  made to ask for them.
#}
{% materialization unit, adapter='differential' %}
  {%- set columns = none if config.get('sql_header') else adapter.differential_query_columns(sql) -%}
  {%- if columns is none -%}
    {{ return(materialization_unit_default()) }}
  {%- endif -%}
  {%- set types, quoted = {}, {} -%}
  {%- for column in columns -%}
    {% do types.update({column.name | lower: column.data_type}) %}
    {% do quoted.update({column.name | lower: column.quoted}) %}
  {%- endfor -%}
  {%- set rows = config.get('expected_rows') -%}
  {%- set expected = config.get('expected_sql') or get_expected_sql(rows, types, quoted) -%}
  {%- set tested = [] -%}
  {%- for name in (rows[0] if rows else types) -%}
    {% do tested.append(quoted[name | lower]) %}
  {%- endfor -%}
  {% call statement('main', fetch_result=True) %}
    {{ get_unit_test_sql(sql, expected, tested) }}
  {% endcall %}
  {{ return({'relations': []}) }}
{% endmaterialization %}
