{{ config(enabled=var('using_payments', true)) }}
-- depends_on: {{ ref('stg_storefront__payment_tmp') }}
{{ storefront.staged('payment', [
    {'name': 'id', 'alias': 'payment_id', 'type': 'bigint'},
    {'name': 'order_id', 'type': 'bigint'},
    {'name': 'method', 'type': 'string'},
    {'name': 'amount', 'type': 'decimal(12,2)'},
    {'name': 'paid_at', 'type': 'timestamp'},
]) }}
