select * from {{ source('brokerage', 'prospect') }}
