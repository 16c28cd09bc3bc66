select * from {{ source('brokerage', 'trade_type') }}
