with tagged as (
    select product_id, explode(split(tags, ' ')) as tag from {{ ref('stg_storefront__product') }}
)
select tagged.tag, count(distinct lines.order_id) as orders, sum(lines.amount) as amount,
    rank() over (order by sum(lines.amount) desc nulls last, tagged.tag) as place
from tagged
join {{ ref('stg_storefront__line') }} as lines on lines.product_id = tagged.product_id
group by tagged.tag
