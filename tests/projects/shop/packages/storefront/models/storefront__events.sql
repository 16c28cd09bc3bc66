{{ config(
    materialized='incremental' if target.type in ('spark', 'databricks') else 'table',
    unique_key='event_key',
    partition_by=['event_day'],
    file_format='delta',
    incremental_strategy='merge'
) }}
select {{ toolbox.surrogate_key(['order_id', "'order'"]) }} as event_key, order_id, created_at as event_at,
    cast(created_at as date) as event_day, 'ordered' as event
from {{ ref('stg_storefront__order') }}
{% if is_incremental() %} where created_at > (select max(event_at) from {{ this }}) {% endif %}
union all
select {{ toolbox.surrogate_key(['payment_id', "'payment'"]) }}, order_id, paid_at, cast(paid_at as date), 'paid'
from {{ ref('stg_storefront__payment') }}
{% if is_incremental() %} where paid_at > (select max(event_at) from {{ this }}) {% endif %}
