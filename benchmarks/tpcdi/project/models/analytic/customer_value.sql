select c.customer_id, c.tier, c.marketing_nameplate, b.balance, t.trades, t.fees,
  ntile(10) over (order by t.fees desc nulls last, c.customer_id) as decile
from {{ ref('dim_customer') }} c
left join (
  select a.customer_id, sum(f.balance) as balance
  from (select account_id, balance from {{ ref('fact_cash_balances') }}
        qualify row_number() over (partition by account_id order by booked_on desc) = 1) f
  join {{ ref('dim_account') }} a on a.account_id = f.account_id and a.is_current group by a.customer_id
) b on b.customer_id = c.customer_id
left join (
  select customer_id, count(*) as trades, sum(coalesce(fee, 0) + coalesce(commission, 0)) as fees
  from {{ ref('fact_trade') }} group by customer_id
) t on t.customer_id = c.customer_id
where c.is_current
