select user_id, url, device, count(*) as visits, max(ms) as longest from {{ source('web', 'visits') }} group by user_id, url, device
