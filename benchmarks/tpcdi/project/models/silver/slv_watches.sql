select w_c_id as customer_id, w_s_symb as symbol,
  min(case when w_action = 'ACTV' then w_dts end) as placed_at,
  max(case when w_action = 'CNCL' then w_dts end) as removed_at
from {{ ref('brz_watch_history') }}
group by w_c_id, w_s_symb
