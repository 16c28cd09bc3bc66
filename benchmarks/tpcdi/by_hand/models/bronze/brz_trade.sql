{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='t_id',
    post_hook="delete from {{ this }} where cdc_flag = 'D'"
) }}
select *, _metadata.file_name as loaded_from from {{ source('brokerage', 'trade') }} {{ arrived() }}
qualify row_number() over (partition by t_id order by cdc_dsn desc) = 1
