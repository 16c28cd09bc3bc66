select auction, bidder, price, date_time, extra from nexmark.bid
