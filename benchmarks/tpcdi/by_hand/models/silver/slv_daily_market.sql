{{ config(materialized='incremental', incremental_strategy='append') }}
select * from (
  select
    dm_date, dm_s_symb as symbol, dm_close as close, dm_high as high, dm_low as low, dm_vol as volume,
    max(dm_high) over year as high_52_weeks,
    min(dm_low) over year as low_52_weeks
  from {{ ref('brz_daily_market') }}
  {% if is_incremental() %} where dm_date > (select max(dm_date) from {{ this }}) - interval 365 days {% endif %}
  window year as (
    partition by dm_s_symb order by dm_date range between interval 364 days preceding and current row
  )
)
{% if is_incremental() %} where dm_date > (select max(dm_date) from {{ this }}) {% endif %}
