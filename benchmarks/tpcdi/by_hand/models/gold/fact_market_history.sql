{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['symbol', 'dm_date']) }}
select m.symbol, s.cik, s.company_name, m.dm_date, d.sk_date_id, m.close, m.high, m.low, m.volume,
  m.high_52_weeks, m.low_52_weeks, round(m.close / nullif(f.eps_year, 0), 2) as price_earnings,
  round(s.dividend / m.close * 100, 2) as yield
from {{ ref('slv_daily_market') }} m
join {{ ref('dim_date') }} d on d.date_value = m.dm_date
left join {{ ref('dim_security') }} s
  on s.symbol = m.symbol and m.dm_date >= cast(s.effective_from as date)
 and (s.effective_to is null or m.dm_date < cast(s.effective_to as date))
left join {{ ref('slv_financials') }} f
  on f.cik = s.cik and f.fi_year = year(add_months(m.dm_date, -3)) and f.fi_quarter = quarter(add_months(m.dm_date, -3))
{% if is_incremental() %} where m.dm_date > (select max(dm_date) from {{ this }}) - interval 3 days {% endif %}
