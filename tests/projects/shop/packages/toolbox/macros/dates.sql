{# Numbers from 0: a cross join for each binary digit of the greatest. #}
{% macro numbers(count) %}
  {%- set digits = [] -%}
  {%- for exponent in range(20) if 2 ** exponent < count -%} {%- do digits.append(exponent) -%} {%- endfor -%}
  with bits as (select 0 as bit union all select 1),
  numbered as (
    select {% for n in digits %}b{{ n }}.bit * {{ 2 ** n }} + {% endfor %} 0 as number
    from bits as unused
    {%- for n in digits %} cross join bits as b{{ n }}{% endfor %}
    where unused.bit = 0
  )
  select number from numbered where number < {{ count }}
{% endmacro %}

{# A day for each from the first to the last; both are SQL. #}
{% macro date_spine(first, last) %}
  {%- set count = 1 -%}
  {%- if execute -%}
    {%- set count = run_query('select ' ~ dbt.datediff(first, last, 'day') ~ ' + 1').columns[0].values()[0] -%}
  {%- endif -%}
  select cast({{ dbt.dateadd('day', 'row_number() over (order by number) - 1', first) }} as date) as date_day
  from ({{ toolbox.numbers([count or 1, 1] | max) }})
{% endmacro %}

{% macro this_week() %}date_trunc('week', {{ dbt.current_timestamp() }}){% endmacro %}
{% macro last_week() %}{{ dbt.dateadd('day', -7, toolbox.this_week()) }}{% endmacro %}
