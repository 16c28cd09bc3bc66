with paid as (
    select order_id, sum(amount) as paid, max(paid_at) as last_paid_at
    from {{ ref('stg_storefront__payment') }}
    group by order_id
)
select orders.order_key, orders.order_id, orders.amount, coalesce(paid.paid, 0) as paid,
    datediff(current_date(), cast(orders.created_at as date)) as days_old
from {{ ref('storefront__orders') }} as orders
left join paid on paid.order_id = orders.order_id
where orders.status != 'cancelled' and orders.amount > coalesce(paid.paid, 0)
    and not exists (
        select 1 from {{ ref('storefront__events') }} as events
        where events.order_id = orders.order_id and events.event = 'paid' and events.event_at > now()
    )
