select url, device, count(*) as visits from {{ source('web', 'visits') }} group by url, device
