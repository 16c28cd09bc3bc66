select
    auction, bidder, price, date_time, extra,
    date_format(date_time, 'yyyy-MM-dd') as day,
    date_format(date_time, 'HH:mm') as minute
from nexmark.bid
