select * from {{ source('brokerage', 'status_type') }}
