select
  to_timestamp_ntz(substr(line, 1, 15), 'yyyyMMdd-HHmmss') as pts,
  substr(line, 16, 3) as rec_type,
  line
from {{ source('brokerage', 'finwire') }}
