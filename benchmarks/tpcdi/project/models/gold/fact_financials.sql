select f.cik, c.company_name, c.sector, f.fi_year, f.fi_quarter, f.revenue, f.earnings, f.eps, f.eps_year, f.margin
from {{ ref('slv_financials') }} f
join {{ ref('dim_company') }} c on c.cik = f.cik and c.is_current
