select
    date_format(date_time, 'yyyy-MM-dd') as day,
    count(*) as bids,
    count(*) filter (where price < 10000) as low_bids,
    count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,
    count(*) filter (where price >= 1000000) as high_bids,
    count(distinct bidder) as bidders,
    count(distinct bidder) filter (where price < 10000) as low_bidders,
    count(distinct bidder) filter (where price >= 10000 and price < 1000000) as middle_bidders,
    count(distinct bidder) filter (where price >= 1000000) as high_bidders,
    count(distinct auction) as auctions,
    count(distinct auction) filter (where price < 10000) as low_auctions,
    count(distinct auction) filter (where price >= 10000 and price < 1000000) as middle_auctions,
    count(distinct auction) filter (where price >= 1000000) as high_auctions
from nexmark.bid
group by date_format(date_time, 'yyyy-MM-dd')
