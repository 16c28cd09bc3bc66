select l.level, count(*) as headcount, sum(e.salary) as payroll
from {{ ref('levels') }} l
join {{ source('firm', 'employees') }} e on e.employee = l.employee
group by l.level
