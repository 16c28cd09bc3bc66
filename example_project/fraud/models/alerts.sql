-- Accounts in suspicious rings; those that have not paid yet are kept.
select r.account, r.ring, coalesce(p.payments, 0) as payments, coalesce(p.amount, 0) as amount
from {{ ref('suspicious_rings') }} s
join {{ ref('rings') }} r on r.ring = s.ring
left join {{ ref('paid') }} p on p.account = r.account
