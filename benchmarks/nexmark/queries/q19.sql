-- the ten highest bids of each auction
select *
from nexmark.bid
qualify row_number() over (
    partition by auction order by price desc, date_time, bidder, channel, url, extra, arrived
) <= 10
