select b.*, m.last_name as manager_last_name, c.team
from {{ ref('slv_brokers') }} b
left join {{ ref('brz_hr') }} m on m.employee_id = b.manager_id
left join (select manager_id, count(*) as team from {{ ref('slv_brokers') }} group by manager_id) c
  on c.manager_id = b.manager_id
