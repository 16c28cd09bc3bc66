-- Packages that lead back to themselves.
select package, steps from {{ ref('distances') }} where package = requirement
