select * from {{ ref('slv_dates') }}
