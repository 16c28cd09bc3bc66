{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='trade_id',
    post_hook="{{ remove_gone('trade_id', ref('brz_trade'), 't_id') }}"
) }}
select
  t.t_id as trade_id, t.t_dts as traded_at, s.st_name as status, y.tt_name as trade_type, y.tt_is_sell = 1 as is_sell,
  t.t_is_cash = 1 as is_cash, t.t_s_symb as symbol, t.t_qty as quantity, t.t_bid_price as bid_price,
  t.t_ca_id as account_id, t.t_exec_name as executor, t.t_trade_price as price, t.t_chrg as fee,
  t.t_comm as commission, t.t_tax as tax, t.loaded_from
from {{ ref('brz_trade') }} t
join {{ ref('brz_status_type') }} s on t.t_st_id = s.st_id
join {{ ref('brz_trade_type') }} y on t.t_tt_id = y.tt_id
{% if is_incremental() %} where t.t_id in {{ newer('t_id', ref('brz_trade')) }} {% endif %}
