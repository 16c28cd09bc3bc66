-- Tail numbers that no register knows.
select distinct tailnum
from {{ ref('departures') }}
where tailnum is not null
except
select tailnum from {{ source('feed', 'planes') }}
