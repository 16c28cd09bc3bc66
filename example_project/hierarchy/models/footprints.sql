-- What comes with each package.
select n.package, count(*) as packages, sum(p.size) as size
from {{ ref('needs') }} n
join {{ source('environment', 'packages') }} p on p.package = n.requirement
group by n.package
