-- Who uses which device, of those that several accounts share, but not so many that it says nothing.
select u.account, u.device
from {{ source('bank', 'uses') }} u
join {{ ref('devices') }} d on d.device = u.device
join {{ ref('limits') }} l on l.kind = d.kind
where d.accounts between 2 and l.most_accounts
