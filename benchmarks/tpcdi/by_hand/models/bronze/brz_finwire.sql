{{ config(materialized='incremental', incremental_strategy='append') }}
select
  to_timestamp_ntz(substr(line, 1, 15), 'yyyyMMdd-HHmmss') as pts,
  substr(line, 16, 3) as rec_type,
  line,
  _metadata.file_name as loaded_from
from {{ source('brokerage', 'finwire') }} {{ arrived() }}
