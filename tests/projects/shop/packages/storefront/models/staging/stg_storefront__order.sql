-- depends_on: {{ ref('stg_storefront__order_tmp') }}
{{ storefront.staged('order', storefront.order_columns()) }}
