select * from {{ var('payment') }}
