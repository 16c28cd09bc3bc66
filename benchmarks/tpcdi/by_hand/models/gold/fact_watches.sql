{{ config(materialized='incremental', incremental_strategy='merge', unique_key=['customer_id', 'symbol']) }}
select w.customer_id, w.symbol, s.cik, w.placed_at, w.removed_at, w.removed_at is null as is_watched, c.tier,
  w.loaded_from
from {{ ref('slv_watches') }} w
left join {{ ref('dim_security') }} s on s.symbol = w.symbol and s.is_current
left join {{ ref('dim_customer') }} c on c.customer_id = w.customer_id and c.is_current
{% if is_incremental() %} where w.customer_id in {{ newer('customer_id', ref('slv_watches')) }} {% endif %}
