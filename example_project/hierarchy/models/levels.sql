-- How far each employee is from the chief.
with recursive below(employee, level) as (
    select employee, 0 from {{ source('firm', 'employees') }} where manager is null
    union all
    select e.employee, b.level + 1
    from below b
    join {{ source('firm', 'employees') }} e on e.manager = b.employee
)
select employee, level from below
