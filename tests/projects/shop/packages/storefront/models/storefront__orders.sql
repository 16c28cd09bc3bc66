with orders as (
    select * from {{ ref('stg_storefront__order') }}
),
totals as (
    select * from {{ ref('int_storefront__order_totals') }}
)
select {{ toolbox.surrogate_key(['orders.source_relation', 'orders.order_id']) }} as order_key,
    orders.*, totals.amount, totals.lines, totals.products, customers.country,
    row_number() over (
        partition by orders.customer_id order by orders.created_at, orders.order_id, orders.source_relation
    ) as order_of_customer,
    lag(orders.created_at) over (
        partition by orders.customer_id order by orders.created_at, orders.order_id, orders.source_relation
    ) as former_order_at
from orders
left join totals on totals.order_id = orders.order_id
left join {{ ref('stg_storefront__customer') }} as customers on customers.customer_id = orders.customer_id
