-- sessions of a bidder: bids with less than 10 seconds between one and the next
with marked as (
    select
        bidder, date_time,
        case when date_time < lag(date_time) over (partition by bidder order by date_time) + interval 10 seconds
            then 0 else 1 end as fresh
    from nexmark.bid
),
numbered as (
    select bidder, date_time, sum(fresh) over (partition by bidder order by date_time range unbounded preceding) as session
    from marked
)
select bidder, count(*) as bids, min(date_time) as started, max(date_time) + interval 10 seconds as ended
from numbered
group by bidder, session
