-- Each airline by name over the whole year.
select a.airline, d.carrier, sum(d.flights) as flights, sum(d.cancelled) as cancelled, max(d.worst_delay) as worst_delay
from {{ ref('delays_by_carrier_day') }} d
join {{ ref('airlines') }} a on a.carrier = d.carrier
group by a.airline, d.carrier
