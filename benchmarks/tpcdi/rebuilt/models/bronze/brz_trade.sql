select * from {{ source('brokerage', 'trade') }}
qualify row_number() over (partition by t_id order by cdc_dsn desc) = 1 and cdc_flag <> 'D'
