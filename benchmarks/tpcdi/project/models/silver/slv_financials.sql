with wire as (
  select
    pts,
    cast(substr(line, 19, 4) as int) as fi_year,
    cast(substr(line, 23, 1) as int) as fi_quarter,
    to_date(substr(line, 24, 8), 'yyyyMMdd') as quarter_start,
    cast(trim(substr(line, 40, 17)) as decimal(17,2)) as revenue,
    cast(trim(substr(line, 57, 17)) as decimal(17,2)) as earnings,
    cast(trim(substr(line, 74, 12)) as decimal(12,2)) as eps,
    cast(trim(substr(line, 98, 12)) as decimal(12,2)) as margin,
    cast(trim(substr(line, 161, 13)) as bigint) as shares,
    trim(substr(line, 187, 60)) as company
  from {{ ref('brz_finwire') }}
  where rec_type = 'FIN'
)
select
  c.cik, w.fi_year, w.fi_quarter, w.quarter_start, w.revenue, w.earnings, w.eps, w.margin, w.shares,
  sum(w.eps) over (partition by c.cik order by w.fi_year, w.fi_quarter rows between 3 preceding and current row) as eps_year
from wire w
join {{ ref('slv_companies') }} c
  on (w.company = c.cik or w.company = c.company_name)
 and w.pts >= c.effective_from and (c.effective_to is null or w.pts < c.effective_to)
