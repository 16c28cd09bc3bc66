select category, avg(final) as average
from (
    select max(b.price) as final, a.category
    from nexmark.auction as a, nexmark.bid as b
    where a.id = b.auction and b.date_time between a.date_time and a.expires
    group by a.id, a.category
)
group by category
