select
  th_t_id as trade_id,
  min(th_dts) as created_at,
  max(case when th_st_id in ('CMPT', 'CNCL') then th_dts end) as closed_at,
  count(*) as steps
from {{ ref('brz_trade_history') }}
group by th_t_id
