select
  c.customer_id, c.effective_from, c.effective_to, c.effective_to is null as is_current, s.st_name as status,
  c.tax_id, c.last_name, c.first_name, c.tier, c.dob, c.address_line1, c.postal_code, c.city, c.email,
  n.tx_name as national_tax, n.tx_rate as national_rate, l.tx_name as local_tax, l.tx_rate as local_rate,
  p.agency_id, p.credit_rating, p.net_worth,
  concat_ws('+', p.high_value, p.expenses, p.boomer, p.money_alert) as marketing_nameplate
from {{ ref('slv_customers') }} c
join {{ ref('brz_status_type') }} s on s.st_id = c.status
left join {{ ref('brz_tax_rate') }} n on n.tx_id = c.national_tax_id
left join {{ ref('brz_tax_rate') }} l on l.tx_id = c.local_tax_id
left join (
  select upper(last_name) as last_name, upper(first_name) as first_name, upper(address_line1) as address_line1,
    upper(postal_code) as postal_code, max(agency_id) as agency_id, max(credit_rating) as credit_rating,
    max(net_worth) as net_worth, max(high_value) as high_value, max(expenses) as expenses, max(boomer) as boomer,
    max(money_alert) as money_alert
  from {{ ref('slv_prospects') }} group by 1, 2, 3, 4
) p on c.effective_to is null and upper(c.last_name) = p.last_name and upper(c.first_name) = p.first_name
   and upper(c.address_line1) = p.address_line1 and upper(c.postal_code) = p.postal_code
