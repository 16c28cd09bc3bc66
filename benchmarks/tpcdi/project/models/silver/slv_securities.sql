with wire as (
  select
    pts,
    trim(substr(line, 19, 15)) as symbol,
    trim(substr(line, 34, 6)) as issue_type,
    trim(substr(line, 40, 4)) as status,
    trim(substr(line, 44, 70)) as security_name,
    trim(substr(line, 114, 6)) as exchange_id,
    cast(trim(substr(line, 120, 13)) as bigint) as shares_outstanding,
    to_date(substr(line, 133, 8), 'yyyyMMdd') as first_trade,
    to_date(substr(line, 141, 8), 'yyyyMMdd') as first_trade_on_exchange,
    cast(trim(substr(line, 149, 12)) as decimal(12,2)) as dividend,
    trim(substr(line, 161, 60)) as company
  from {{ ref('brz_finwire') }}
  where rec_type = 'SEC'
)
select
  w.pts as effective_from,
  lead(w.pts) over (partition by w.symbol order by w.pts) as effective_to,
  w.symbol, w.issue_type, w.status, w.security_name, w.exchange_id, w.shares_outstanding,
  w.first_trade, w.first_trade_on_exchange, w.dividend, c.cik
from wire w
join {{ ref('slv_companies') }} c
  on (w.company = c.cik or w.company = c.company_name)
 and w.pts >= c.effective_from and (c.effective_to is null or w.pts < c.effective_to)
