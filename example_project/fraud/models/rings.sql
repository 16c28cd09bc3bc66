-- Accounts that are connected by devices. Labels go from account to device, and from there to the next accounts:
-- so a device costs one row for each of its accounts, not for each pair of them.
with recursive by_account as (
    select account, min(ring) as ring
    from (
        select account, account as ring from {{ ref('account_devices') }}
        union all
        select u.account, d.ring from {{ ref('account_devices') }} u join by_device d on d.device = u.device
    ) labels
    group by account
),
by_device as (
    select u.device, min(a.ring) as ring
    from {{ ref('account_devices') }} u
    join by_account a on a.account = u.account
    group by u.device
)
select account, ring from by_account
