select hh_h_t_id as opened_trade_id, hh_t_id as trade_id, hh_before_qty as before_quantity,
  hh_after_qty as after_quantity, sum(case when cdc_flag = 'D' then -1 else 1 end) as times
from {{ ref('brz_holding_history') }}
group by hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
having sum(case when cdc_flag = 'D' then -1 else 1 end) > 0
