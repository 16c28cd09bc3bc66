{{ config(pre_hook="select 1 as before_this_model") }}
{%- set methods = toolbox.column_values(ref('stg_storefront__payment'), 'method') %}
select orders.country, {{ toolbox.pivot('payments.method', methods, 'payments.amount', 'by_') }}
from {{ ref('stg_storefront__payment') }} as payments
join {{ ref('storefront__orders') }} as orders on orders.order_id = payments.order_id
group by orders.country
