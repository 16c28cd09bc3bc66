select w.symbol, count(*) as watchers, count(distinct w.customer_id) as customers
from {{ ref('fact_watches') }} w
where w.is_watched
  and not exists (select 1 from {{ ref('fact_holdings') }} h where h.customer_id = w.customer_id and h.symbol = w.symbol)
group by w.symbol
