select h.opened_trade_id, h.trade_id, t.traded_at, t.sk_date_id, t.account_id, t.customer_id, t.broker_id, t.symbol,
  t.cik, t.price as current_price, h.before_quantity, h.after_quantity, h.after_quantity - h.before_quantity as moved
from {{ ref('slv_holdings') }} h
join {{ ref('fact_trade') }} t on t.trade_id = h.trade_id
