select device, kind, count(*) as accounts
from {{ source('bank', 'uses') }}
group by device, kind
