select account, count(*) as payments, sum(amount) as amount from {{ source('bank', 'payments') }} group by account
