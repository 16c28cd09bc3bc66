-- depends_on: {{ ref('stg_storefront__product_tmp') }}
{{ storefront.staged('product', [
    {'name': 'id', 'alias': 'product_id', 'type': 'bigint'},
    {'name': 'title', 'type': 'string'},
    {'name': 'tags', 'type': 'string'},
]) }}
