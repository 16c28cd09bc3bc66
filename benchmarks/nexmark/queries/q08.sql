-- people who opened an auction in the 10 seconds in which they registered
select p.id, p.name, p.started
from (
    select id, name, unix_seconds(date_time) div 10 * 10 as started
    from nexmark.person
    group by id, name, started
) as p
inner join (
    select seller, unix_seconds(date_time) div 10 * 10 as started
    from nexmark.auction
    group by seller, started
) as a on p.id = a.seller and p.started = a.started
