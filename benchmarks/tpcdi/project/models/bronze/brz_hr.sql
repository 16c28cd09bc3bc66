select * from {{ source('brokerage', 'hr') }}
