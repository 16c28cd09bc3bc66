select b.auction, b.bidder, b.price, b.date_time, s.value
from nexmark.bid as b
inner join nexmark.side as s on mod(b.auction, 10000) = s.key
