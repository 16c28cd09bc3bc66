-- Each flight with the names of its airports and the plane that flew it.
select d.flight_id, d.flight_date, d.route, o.name as origin_name, t.name as dest_name, p.manufacturer, p.seats, d.distance
from {{ ref('departures') }} d
join {{ source('feed', 'airports') }} o on o.faa = d.origin
join {{ source('feed', 'airports') }} t on t.faa = d.dest
join {{ source('feed', 'planes') }} p on p.tailnum = d.tailnum
where not d.is_cancelled
