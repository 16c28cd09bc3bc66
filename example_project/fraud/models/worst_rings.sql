-- The ten rings with the largest amounts.
select ring, count(*) as accounts, sum(payments) as payments, sum(amount) as amount
from {{ ref('alerts') }}
group by ring
order by amount desc, ring
limit 10
