select b.broker_id, b.last_name, b.branch, count(*) as trades, sum(t.commission) as commission,
  rank() over (partition by b.branch order by sum(t.commission) desc) as place
from {{ ref('fact_trade') }} t join {{ ref('dim_broker') }} b on b.broker_id = t.broker_id
where t.status = 'Completed'
group by b.broker_id, b.last_name, b.branch
