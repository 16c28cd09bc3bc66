select order_id, sum(amount) as amount, count(*) as lines, count(distinct product_id) as products,
    max(case when product_id is null then 1 else 0 end) = 1 as has_unknown_products
from {{ ref('stg_storefront__line') }}
group by order_id
