-- Planes that have flown, by manufacturer.
select p.manufacturer, count(distinct d.tailnum) as planes, count(*) as flights
from {{ ref('departures') }} d
join {{ source('feed', 'planes') }} p on p.tailnum = d.tailnum
group by p.manufacturer
having count(*) > 100
