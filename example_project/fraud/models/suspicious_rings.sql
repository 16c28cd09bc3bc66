select r.ring, count(distinct r.account) as accounts, count(distinct u.device) as devices
from {{ ref('rings') }} r
join {{ ref('account_devices') }} u on u.account = r.account
group by r.ring
having count(distinct r.account) >= {{ var('ring_accounts') }} and count(distinct u.device) > {{ var('ring_devices') }}
