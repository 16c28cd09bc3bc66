select
  p.*, c.customer_id is not null as is_customer,
  case when p.net_worth > 1000000 or p.income > 200000 then 'HighValue' end as high_value,
  case when p.number_children > 3 or p.number_cards > 5 then 'Expenses' end as expenses,
  case when p.age > 45 then 'Boomer' end as boomer,
  case when p.income < 50000 or p.credit_rating < 600 or p.net_worth < 100000 then 'MoneyAlert' end as money_alert
from {{ ref('brz_prospect') }} p
left join (
  select upper(last_name) as last_name, upper(first_name) as first_name, upper(address_line1) as address_line1,
    upper(postal_code) as postal_code, max(customer_id) as customer_id
  from {{ ref('slv_customers') }} where effective_to is null group by 1, 2, 3, 4
) c on upper(p.last_name) = c.last_name and upper(p.first_name) = c.first_name
   and upper(p.address_line1) = c.address_line1 and upper(p.postal_code) = c.postal_code
