-- the highest bids of each 10 seconds
with spans as (select *, unix_seconds(date_time) div 10 as span from nexmark.bid),
highest as (select span, max(price) as top from spans group by span)
select b.auction, b.price, b.bidder, b.date_time, b.extra
from spans as b
inner join highest as h on b.price = h.top and b.span = h.span
