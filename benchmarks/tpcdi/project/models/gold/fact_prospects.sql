select agency_id, last_name, first_name, is_customer, credit_rating, net_worth,
  concat_ws('+', high_value, expenses, boomer, money_alert) as marketing_nameplate
from {{ ref('slv_prospects') }}
