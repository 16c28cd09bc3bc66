select
  xpath_string(line, 'Action/@ActionType') as action_type,
  to_timestamp_ntz(xpath_string(line, 'Action/@ActionTS')) as action_ts,
  line
from (
  select regexp_replace(line, 'TPCDI:', '') as line
  from {{ source('brokerage', 'customer_mgmt') }}
  where line like '<TPCDI:Action %'
)
