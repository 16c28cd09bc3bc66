-- bids of a bidder in each 10 seconds of arrival
select bidder, count(*) as bids, timestamp_seconds(unix_seconds(arrived) div 10 * 10) as started
from nexmark.bid
group by bidder, unix_seconds(arrived) div 10 * 10
