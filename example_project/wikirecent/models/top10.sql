select user, edits from {{ ref('editors') }} order by edits desc, user limit 10
