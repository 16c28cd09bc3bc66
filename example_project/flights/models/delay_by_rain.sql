-- Does rain delay?
select
    origin,
    case when precip is null then 'unknown' when precip > 0 then 'rain' else 'dry' end as weather,
    count(*) as flights,
    count(dep_delay) as departed,
    sum(dep_delay) as delay_minutes,
    max(wind_speed) as strongest_wind
from {{ ref('departure_weather') }}
group by 1, 2
