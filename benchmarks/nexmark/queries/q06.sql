-- over the last 10 auctions of each seller, what they closed at
with closed as (
    select a.id, a.seller, b.price, b.date_time
    from nexmark.auction as a
    inner join nexmark.bid as b on a.id = b.auction and b.date_time between a.date_time and a.expires
    qualify row_number() over (partition by a.id, a.seller order by b.price desc, b.date_time, b.bidder) = 1
)
select
    seller,
    id,
    avg(price) over (partition by seller order by date_time, id rows between 10 preceding and current row) as average
from closed
