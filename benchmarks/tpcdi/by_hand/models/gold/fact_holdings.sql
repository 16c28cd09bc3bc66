{{ config(
    materialized='incremental', incremental_strategy='merge',
    unique_key=['opened_trade_id', 'trade_id', 'before_quantity', 'after_quantity'],
    post_hook="{{ remove_gone('trade_id', ref('slv_holdings'), 'trade_id') }}"
) }}
select h.opened_trade_id, h.trade_id, t.traded_at, t.sk_date_id, t.account_id, t.customer_id, t.broker_id, t.symbol,
  t.cik, t.price as current_price, h.before_quantity, h.after_quantity, h.after_quantity - h.before_quantity as moved,
  h.loaded_from
from {{ ref('slv_holdings') }} h
join {{ ref('fact_trade') }} t on t.trade_id = h.trade_id
{% if is_incremental() %} where h.trade_id in {{ newer('trade_id', ref('slv_holdings')) }} {% endif %}
