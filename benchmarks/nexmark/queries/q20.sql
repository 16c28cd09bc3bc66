select
    b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
    a.item_name, a.description, a.initial_bid, a.reserve,
    a.date_time as opened, a.expires, a.seller, a.category, a.extra as auction_extra
from nexmark.bid as b
inner join nexmark.auction as a on b.auction = a.id
where a.category = 10
