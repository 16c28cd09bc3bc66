-- All airlines, day by day.
select flight_date, sum(flights) as flights, sum(cancelled) as cancelled, sum(delay_minutes) as delay_minutes
from {{ ref('delays_by_carrier_day') }}
group by flight_date
