{{ config(materialized='incremental', incremental_strategy='append') }}
select *, _metadata.file_name as loaded_from from {{ source('brokerage', 'watch_history') }} {{ arrived() }}
