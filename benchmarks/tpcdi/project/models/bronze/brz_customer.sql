select * from {{ source('brokerage', 'customer') }}
