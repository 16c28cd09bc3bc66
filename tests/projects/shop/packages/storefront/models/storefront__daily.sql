with days as (
    {{ toolbox.date_spine("cast('2026-05-01' as date)", "cast('2026-07-15' as date)") }}
),
sold as (
    select cast(created_at as date) as date_day, count(*) as orders, sum(amount) as amount
    from {{ ref('storefront__orders') }}
    where status != 'cancelled'
    group by 1
)
select days.date_day, coalesce(sold.orders, 0) as orders, coalesce(sold.amount, 0) as amount,
    sum(coalesce(sold.amount, 0)) over (order by days.date_day rows unbounded preceding) as amount_so_far
from days
left join sold on sold.date_day = days.date_day
where days.date_day <= cast({{ dbt.current_timestamp() }} as date)
