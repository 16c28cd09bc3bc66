-- Captured amounts by the merchant's region; merchants that are not listed are kept.
select coalesce(m.region, 'unknown') as region, sum(c.captured) as captured, count(*) as merchants
from {{ ref('captured_by_merchant') }} c
left join {{ ref('merchants') }} m on m.merchant = c.merchant
group by 1
