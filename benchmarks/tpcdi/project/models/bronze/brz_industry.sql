select * from {{ source('brokerage', 'industry') }}
