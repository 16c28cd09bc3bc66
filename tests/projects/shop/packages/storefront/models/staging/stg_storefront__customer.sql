-- depends_on: {{ ref('stg_storefront__customer_tmp') }}
{{ storefront.staged('customer', [
    {'name': 'id', 'alias': 'customer_id', 'type': 'bigint'},
    {'name': 'name', 'type': 'string'},
    {'name': 'country', 'type': 'string'},
    {'name': 'email', 'type': 'string'},
]) }}
