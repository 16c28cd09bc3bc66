select s.*, s.effective_to is null as is_current, c.company_name, c.sector
from {{ ref('slv_securities') }} s
join {{ ref('dim_company') }} c
  on c.cik = s.cik and s.effective_from >= c.effective_from
 and (c.effective_to is null or s.effective_from < c.effective_to)
