select * from {{ source('brokerage', 'date') }}
