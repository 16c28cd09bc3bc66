select user, count(*) as edits, max(timestamp) as last_seen
from {{ source('wikimedia', 'recentchange') }}
where type in ('edit', 'new') and not bot
group by user
