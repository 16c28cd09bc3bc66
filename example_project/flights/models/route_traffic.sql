-- Seats and miles offered on each route.
select route, origin_name, dest_name, count(*) as flights, sum(seats) as seats, sum(distance) as miles
from {{ ref('routes') }}
group by route, origin_name, dest_name
