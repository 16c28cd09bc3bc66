-- Who reports to whom, directly (depth 1) or through others.
with recursive chain(manager, employee, depth) as (
    select manager, employee, 1 from {{ source('firm', 'employees') }} where manager is not null
    union all
    select c.manager, e.employee, c.depth + 1
    from chain c
    join {{ source('firm', 'employees') }} e on e.manager = c.employee
)
select manager, employee, depth from chain
