select
  c.cik, c.effective_from, c.effective_to, c.effective_to is null as is_current, s.st_name as status, c.company_name,
  i.in_name as industry, i.in_sc_id as sector, c.sp_rating,
  c.sp_rating not in ('AAA', 'AA', 'AA+', 'A', 'A-', 'BBB') as is_low_grade,
  c.ceo, c.address_line1, c.postal_code, c.city, c.state_province, c.country, c.description, c.founding_date
from {{ ref('slv_companies') }} c
join {{ ref('brz_status_type') }} s on s.st_id = c.status
join {{ ref('brz_industry') }} i on i.in_id = c.industry_id
