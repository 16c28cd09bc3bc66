select w.customer_id, w.symbol, s.cik, w.placed_at, w.removed_at, w.removed_at is null as is_watched, c.tier
from {{ ref('slv_watches') }} w
left join {{ ref('dim_security') }} s on s.symbol = w.symbol and s.is_current
left join {{ ref('dim_customer') }} c on c.customer_id = w.customer_id and c.is_current
