select * from {{ var('product') }}
