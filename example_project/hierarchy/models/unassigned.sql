-- Employees from whom no way leads up to the chief: somebody above has left.
select employee from {{ source('firm', 'employees') }}
except
select employee from {{ ref('levels') }}
