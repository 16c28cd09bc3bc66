-- The ten busiest routes.
select route, origin_name, dest_name, flights, seats
from {{ ref('route_traffic') }}
order by flights desc, route
limit 10
