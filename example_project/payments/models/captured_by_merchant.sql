select merchant, sum(amount) as captured, count(*) as payments
from {{ source('shop', 'payments') }}
where status = 'captured'
group by merchant
