-- Flights that took place or were cancelled, with their route spelled out.
select
    flight_id, flight_date, hour, carrier, tailnum, origin, dest,
    concat(origin, '-', dest) as route,
    dep_delay, arr_delay, distance,
    status = 'cancelled' as is_cancelled
from {{ source('feed', 'flights') }}
