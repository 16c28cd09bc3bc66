{# Of each column that a model wants: the one that the relation has, or NULL. #}
{% macro fill_columns(relation, wanted) %}
  {%- set present = adapter.get_columns_in_relation(relation) | map(attribute='name') | map('lower') | list -%}
  {%- for column in wanted %}
    {% if column.name | lower in present -%}
      {{ column.name }}{% if column.alias %} as {{ column.alias }}{% endif %}
    {%- else -%}
      cast(null as {{ column.type }}) as {{ column.alias or column.name }}
    {%- endif -%}{{ ',' if not loop.last }}
  {%- endfor %}
{% endmacro %}

{# The relations' rows, with the columns that any of them has. Those that are absent are left out. #}
{% macro union_tables(schema, identifiers) %}
  {%- set found, types = [], {} -%}
  {%- if execute -%}
    {%- for identifier in identifiers -%}
      {%- set relation = adapter.get_relation(database=target.database, schema=schema, identifier=identifier) -%}
      {%- if relation is not none -%}
        {%- do found.append(relation) -%}
        {%- for column in adapter.get_columns_in_relation(relation) -%}
          {%- do types.update({column.name: types.get(column.name, column.dtype)}) -%}
        {%- endfor -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- for relation in found %}
    {%- set own = adapter.get_columns_in_relation(relation) | map(attribute='name') | list %}
    (
      select '{{ relation }}' as source_relation
      {%- for name, type in types.items() %},
        {{ 'cast(`' ~ name ~ '` as ' ~ type ~ ')' if name in own else 'cast(null as ' ~ type ~ ')' }} as `{{ name }}`
      {%- endfor %}
      from {{ relation }}
    )
    {{ 'union all' if not loop.last }}
  {%- else %}
    select cast(null as string) as source_relation limit 0
  {%- endfor %}
{% endmacro %}

{# What a column holds, the most frequent first. #}
{% macro column_values(relation, column) %}
  {%- if not execute -%} {{ return([]) }} {%- endif -%}
  {%- set sql -%}
    select {{ column }} from {{ relation }} where {{ column }} is not null
    group by 1 order by count(*) desc, {{ column }}
  {%- endset -%}
  {{ return(run_query(sql).columns[0].values() | list) }}
{% endmacro %}

{% macro pivot(column, values, then, prefix='') %}
  {%- for value in values %}
    sum(case when {{ column }} = '{{ value }}' then {{ then }} else 0 end)
      as {{ prefix ~ toolbox.dbt_friendly(value) }}{{ ',' if not loop.last }}
  {%- endfor %}
{% endmacro %}

{% macro dbt_friendly(value) %}{{ return(modules.re.sub('[^a-z0-9]+', '_', value | lower)) }}{% endmacro %}
