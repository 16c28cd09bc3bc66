select * from {{ var('customer') }}
