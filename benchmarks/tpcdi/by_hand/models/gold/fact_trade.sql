{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='trade_id',
    post_hook="{{ remove_gone('trade_id', ref('slv_trades'), 'trade_id') }}"
) }}
select
  t.trade_id, t.traded_at, d.sk_date_id, h.created_at, h.closed_at, t.status, t.trade_type, t.is_sell, t.is_cash,
  t.symbol, s.cik, s.sector, t.quantity, t.bid_price, t.price, t.fee, t.commission, t.tax, t.executor,
  t.account_id, a.customer_id, a.customer_tier, a.broker_id, t.loaded_from
from {{ ref('slv_trades') }} t
join {{ ref('slv_trade_steps') }} h on h.trade_id = t.trade_id
left join {{ ref('dim_date') }} d on d.date_value = cast(t.traded_at as date)
left join {{ ref('dim_security') }} s
  on s.symbol = t.symbol and t.traded_at >= s.effective_from and (s.effective_to is null or t.traded_at < s.effective_to)
left join {{ ref('dim_account') }} a
  on a.account_id = t.account_id and t.traded_at >= a.effective_from
 and (a.effective_to is null or t.traded_at < a.effective_to)
{% if is_incremental() %} where t.trade_id in {{ newer('trade_id', ref('slv_trades')) }} {% endif %}
