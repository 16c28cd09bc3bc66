-- The three worst days of each month.
select month, place, flight_date, delay_minutes
from (
    select
        date_trunc('month', flight_date) as month, flight_date, delay_minutes,
        row_number() over (partition by date_trunc('month', flight_date) order by delay_minutes desc, flight_date) as place
    from {{ ref('daily') }}
)
where place <= 3
