select * from {{ source('brokerage', 'tax_rate') }}
