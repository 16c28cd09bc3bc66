select auction, price from nexmark.bid where mod(auction, 123) = 0
