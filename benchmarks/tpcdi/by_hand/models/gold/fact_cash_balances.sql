{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['account_id', 'booked_on']) }}
with days as (
  select account_id, cast(booked_at as date) as booked_on, sum(amount * times) as amount
  from {{ ref('slv_cash') }}
  {% if is_incremental() %}
  where account_id in (
    select account_id from {{ ref('slv_cash') }}
    where booked_at >= (select max(booked_on) from {{ this }}) - interval 3 days
  )
  {% endif %}
  group by account_id, cast(booked_at as date)
)
select account_id, booked_on, amount,
  sum(amount) over (partition by account_id order by booked_on) as balance
from days
