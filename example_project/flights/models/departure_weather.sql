-- Flights with the weather at their hour of departure; flights without a reading are kept.
select d.flight_id, d.origin, d.flight_date, d.dep_delay, w.temp, w.wind_speed, w.precip
from {{ ref('departures') }} d
left join {{ source('feed', 'weather') }} w
    on w.origin = d.origin and w.weather_date = d.flight_date and w.hour = d.hour
