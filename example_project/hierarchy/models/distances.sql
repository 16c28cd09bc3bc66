-- In how many steps each package leads to another, optional ones included: the shortest way.
with recursive ways as (
    select package, requirement, min(steps) as steps
    from (
        select package, requirement, 1 as steps from {{ source('environment', 'requirements') }}
        union all
        select w.package, r.requirement, w.steps + 1
        from ways w
        join {{ source('environment', 'requirements') }} r on r.package = w.requirement
    ) found
    group by package, requirement
)
select package, requirement, steps from ways
