select
  a.account_id, a.effective_from, a.effective_to, a.effective_to is null as is_current, a.status, a.account_name,
  a.tax_status, a.broker_id, b.last_name as broker_last_name, a.customer_id, c.tier as customer_tier,
  c.last_name as customer_last_name
from {{ ref('slv_accounts') }} a
left join {{ ref('dim_broker') }} b on b.broker_id = a.broker_id
left join {{ ref('dim_customer') }} c
  on c.customer_id = a.customer_id and a.effective_from >= c.effective_from
 and (c.effective_to is null or a.effective_from < c.effective_to)
