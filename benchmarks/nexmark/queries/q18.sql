-- the last bid of a bidder on an auction
select auction, bidder, price, channel, url, date_time, extra
from nexmark.bid
qualify row_number() over (
    partition by bidder, auction order by date_time desc, price desc, channel, url, extra
) <= 1
