select status, count(*) as payments, sum(amount) as amount, max(amount) as largest
from {{ source('shop', 'payments') }}
group by status
