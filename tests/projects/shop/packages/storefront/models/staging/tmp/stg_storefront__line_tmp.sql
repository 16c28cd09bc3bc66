select * from {{ var('line') }}
