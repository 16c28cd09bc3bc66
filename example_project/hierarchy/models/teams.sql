-- Everybody below each manager.
select
    r.manager,
    count_if(r.depth = 1) as direct_reports,
    count(*) as headcount,
    max(r.depth) as layers,
    sum(e.salary) as payroll
from {{ ref('reports') }} r
join {{ source('firm', 'employees') }} e on e.employee = r.employee
group by r.manager
