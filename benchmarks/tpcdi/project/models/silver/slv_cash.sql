select ct_ca_id as account_id, ct_dts as booked_at, ct_amt as amount, ct_name as description,
  sum(case when cdc_flag = 'D' then -1 else 1 end) as times
from {{ ref('brz_cash_transaction') }}
group by ct_ca_id, ct_dts, ct_amt, ct_name
having sum(case when cdc_flag = 'D' then -1 else 1 end) > 0
