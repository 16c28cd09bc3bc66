select sk_date_id, date_value, calendar_year_id, calendar_qtr_id, calendar_month_id, day_of_week_num, holiday
from {{ ref('brz_date') }}
