select country,
    sum(case when created_at >= {{ toolbox.this_week() }} then amount end) as this_week,
    sum(case when created_at >= {{ toolbox.last_week() }} and created_at < {{ toolbox.this_week() }} then amount end)
        as last_week,
    count(case when cast(created_at as date) = current_date then 1 end) as today
from {{ ref('storefront__orders') }}
where created_at < current_timestamp()
group by country
