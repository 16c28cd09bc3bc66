select h.customer_id, h.symbol, sum(h.moved) as quantity, max(m.close) as last_close, sum(h.moved) * max(m.close) as value
from {{ ref('fact_holdings') }} h
left join (
  select symbol, close from {{ ref('fact_market_history') }}
  qualify row_number() over (partition by symbol order by dm_date desc) = 1
) m on m.symbol = h.symbol
group by h.customer_id, h.symbol
