select count(*) as edits from {{ source('wikimedia', 'recentchange') }}
