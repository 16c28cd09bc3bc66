{% macro staged(name, wanted) %}
with base as (
    select * from {{ ref('stg_storefront__' ~ name ~ '_tmp') }}
),
fields as (
    select {{ toolbox.fill_columns(ref('stg_storefront__' ~ name ~ '_tmp'), wanted) }}
    from base
)
select * from fields
{% endmacro %}

{% macro order_columns() %}
  {{ return([
    {'name': 'id', 'alias': 'order_id', 'type': 'bigint'},
    {'name': 'customer_id', 'type': 'bigint'},
    {'name': 'status', 'type': 'string'},
    {'name': 'note', 'type': 'string'},
    {'name': 'channel', 'alias': 'sales_channel', 'type': 'string'},
    {'name': 'created_at', 'type': 'timestamp'},
    {'name': 'source_relation', 'type': 'string'},
  ]) }}
{% endmacro %}
