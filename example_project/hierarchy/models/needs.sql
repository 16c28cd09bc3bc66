-- What each package needs to run. Joined with themselves, paths get twice as long in each iteration. Packages that need
-- each other do no harm: a row that is there already is not new.
with recursive paths(package, requirement) as (
    select package, requirement from {{ source('environment', 'requirements') }} where not optional
    union
    select p.package, q.requirement from paths p join paths q on q.package = p.requirement
)
select package, requirement from paths
