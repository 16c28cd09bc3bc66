-- depends_on: {{ ref('stg_storefront__line_tmp') }}
with named as ({{ storefront.staged('line', [
    {'name': 'id', 'alias': 'line_id', 'type': 'bigint'},
    {'name': 'order_id', 'type': 'bigint'},
    {'name': 'product_id', 'type': 'bigint'},
    {'name': 'quantity', 'type': 'bigint'},
    {'name': 'price', 'type': 'decimal(12,2)'},
    {'name': 'discount', 'type': 'decimal(12,2)'},
]) }})
select {{ toolbox.surrogate_key(['order_id', 'line_id']) }} as line_key, *,
    quantity * price - coalesce(discount, 0) as amount
from named
