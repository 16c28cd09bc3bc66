select * from {{ source('brokerage', 'account') }}
