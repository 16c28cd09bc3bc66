{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['customer_id', 'symbol']) }}
select w_c_id as customer_id, w_s_symb as symbol,
  min(case when w_action = 'ACTV' then w_dts end) as placed_at,
  max(case when w_action = 'CNCL' then w_dts end) as removed_at,
  max(loaded_from) as loaded_from
from {{ ref('brz_watch_history') }}
{% if is_incremental() %} where w_c_id in {{ newer('w_c_id', ref('brz_watch_history')) }} {% endif %}
group by w_c_id, w_s_symb
