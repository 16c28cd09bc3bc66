with days as (
  select account_id, cast(booked_at as date) as booked_on, sum(amount * times) as amount
  from {{ ref('slv_cash') }} group by account_id, cast(booked_at as date)
)
select account_id, booked_on, amount,
  sum(amount) over (partition by account_id order by booked_on) as balance
from days
