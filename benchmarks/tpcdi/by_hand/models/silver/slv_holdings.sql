{{ config(
    materialized='incremental', incremental_strategy='merge',
    unique_key=['opened_trade_id', 'trade_id', 'before_quantity', 'after_quantity'],
    post_hook="delete from {{ this }} where times <= 0"
) }}
select hh_h_t_id as opened_trade_id, hh_t_id as trade_id, hh_before_qty as before_quantity,
  hh_after_qty as after_quantity, sum(case when cdc_flag = 'D' then -1 else 1 end) as times,
  max(loaded_from) as loaded_from
from {{ ref('brz_holding_history') }}
{% if is_incremental() %} where hh_t_id in {{ newer('hh_t_id', ref('brz_holding_history')) }} {% endif %}
group by hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
