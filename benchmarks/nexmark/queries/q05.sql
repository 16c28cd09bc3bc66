-- windows of 10 seconds, one every 2 seconds: the auctions with the most bids in each
with counted as (
    select auction, started, count(*) as num
    from (
        select auction, explode(sequence(newest - 8, newest, 2)) as started
        from (select auction, unix_seconds(date_time) div 2 * 2 as newest from nexmark.bid)
    )
    group by auction, started
)
select auction, num, timestamp_seconds(started) as started
from counted
qualify num >= max(num) over (partition by started)
