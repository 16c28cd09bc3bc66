select
  pts as effective_from,
  lead(pts) over (partition by substr(line, 79, 10) order by pts) as effective_to,
  substr(line, 79, 10) as cik,
  trim(substr(line, 19, 60)) as company_name,
  trim(substr(line, 89, 4)) as status,
  trim(substr(line, 93, 2)) as industry_id,
  trim(substr(line, 95, 4)) as sp_rating,
  to_date(substr(line, 99, 8), 'yyyyMMdd') as founding_date,
  trim(substr(line, 107, 80)) as address_line1,
  trim(substr(line, 267, 12)) as postal_code,
  trim(substr(line, 279, 25)) as city,
  trim(substr(line, 304, 20)) as state_province,
  trim(substr(line, 324, 24)) as country,
  trim(substr(line, 348, 46)) as ceo,
  trim(substr(line, 394, 150)) as description
from {{ ref('brz_finwire') }}
where rec_type = 'CMP'
