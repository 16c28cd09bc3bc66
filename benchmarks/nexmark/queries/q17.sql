select
    auction,
    date_format(date_time, 'yyyy-MM-dd') as day,
    count(*) as bids,
    count(*) filter (where price < 10000) as low_bids,
    count(*) filter (where price >= 10000 and price < 1000000) as middle_bids,
    count(*) filter (where price >= 1000000) as high_bids,
    min(price) as min_price,
    max(price) as max_price,
    avg(price) as avg_price,
    sum(price) as sum_price
from nexmark.bid
group by auction, date_format(date_time, 'yyyy-MM-dd')
