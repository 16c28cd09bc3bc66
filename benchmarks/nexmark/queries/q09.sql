select * except (place)
from (
    select
        a.*,
        b.auction,
        b.bidder,
        b.price,
        b.date_time as bid_time,
        b.extra as bid_extra,
        row_number() over (partition by a.id order by b.price desc, b.date_time, b.bidder, b.extra) as place
    from nexmark.auction as a
    inner join nexmark.bid as b on a.id = b.auction
    where b.date_time between a.date_time and a.expires
)
where place <= 1
