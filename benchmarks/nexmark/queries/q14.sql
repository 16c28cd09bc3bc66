select
    auction, bidder,
    0.908 * price as price,
    case
        when hour(date_time) >= 8 and hour(date_time) <= 18 then 'day'
        when hour(date_time) <= 6 or hour(date_time) >= 20 then 'night'
        else 'other'
    end as part_of_day,
    date_time, extra,
    length(extra) - length(replace(extra, 'c', '')) as c_counts
from nexmark.bid
where 0.908 * price > 1000000 and 0.908 * price < 50000000
