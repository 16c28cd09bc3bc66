select customers.customer_id, customers.name, customers.country,
    count(orders.order_key) as orders, coalesce(sum(orders.amount), 0) as spent,
    min(orders.created_at) as first_order_at, max(orders.created_at) as last_order_at,
    case when count(orders.order_key) > 1 then 'returning' else 'new' end as kind
from {{ ref('stg_storefront__customer') }} as customers
left join {{ ref('storefront__orders') }} as orders on orders.customer_id = customers.customer_id
group by 1, 2, 3
