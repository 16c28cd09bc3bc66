with changes as (
  select
    cast(xpath_string(line, 'Action/Customer/Account/@CA_ID') as bigint) as account_id,
    cast(xpath_string(line, 'Action/Customer/@C_ID') as bigint) as customer_id,
    action_ts as changed_at,
    0 as cdc_dsn,
    case when action_type = 'CLOSEACCT' then 'INAC' else 'ACTV' end as status,
    nullif(xpath_string(line, 'Action/Customer/Account/CA_B_ID'), '') as broker_id,
    nullif(xpath_string(line, 'Action/Customer/Account/CA_NAME'), '') as account_name,
    nullif(xpath_string(line, 'Action/Customer/Account/@CA_TAX_ST'), '') as tax_status
  from {{ ref('brz_customer_mgmt') }}
  where action_type in ('NEW', 'ADDACCT', 'UPDACCT', 'CLOSEACCT')
  union all
  select
    ca_id, ca_c_id, cast(date_add(date '2017-07-07', cast(cdc_dsn div 100000000 as int)) as timestamp_ntz), cdc_dsn,
    case when cdc_flag = 'D' then 'INAC' else ca_st_id end, cast(ca_b_id as string), ca_name, cast(ca_tax_st as string)
  from {{ ref('brz_account') }}
)
select
  account_id, customer_id,
  changed_at as effective_from,
  lead(changed_at) over known as effective_to,
  status,
  cast(last_value(broker_id, true) over known as bigint) as broker_id,
  last_value(account_name, true) over known as account_name,
  cast(last_value(tax_status, true) over known as int) as tax_status
from changes
window known as (partition by account_id order by changed_at, cdc_dsn)
