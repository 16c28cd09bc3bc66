select t.sector, d.calendar_month_id, count(*) as trades, sum(t.quantity * t.price) as value,
  sum(case when t.is_sell then t.quantity else 0 end) as sold
from {{ ref('fact_trade') }} t join {{ ref('dim_date') }} d on d.sk_date_id = t.sk_date_id
where t.status = 'Completed'
group by t.sector, d.calendar_month_id
