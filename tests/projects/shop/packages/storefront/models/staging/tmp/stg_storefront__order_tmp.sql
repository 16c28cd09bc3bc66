-- depends_on: {{ source('storefront', 'order_eu') }}, {{ source('storefront', 'order_us') }}
{{ toolbox.union_tables(var('storefront_schema', 'storefront'), var('storefront_order_identifiers')) }}
