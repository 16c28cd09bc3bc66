select url, count(*) as visits, sum(ms) as ms from {{ source('web', 'visits') }} group by url
