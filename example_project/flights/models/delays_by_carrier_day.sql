-- How late each airline was on each day.
select
    carrier, flight_date,
    count(*) as flights,
    count_if(is_cancelled) as cancelled,
    count_if(dep_delay > 15) as late,
    sum(dep_delay) as delay_minutes,
    avg(dep_delay) as mean_delay,
    max(dep_delay) as worst_delay
from {{ ref('departures') }}
group by carrier, flight_date
