with changes as (
  select
    cast(xpath_string(line, 'Action/Customer/@C_ID') as bigint) as customer_id,
    action_ts as changed_at,
    0 as cdc_dsn,
    case when action_type = 'INACT' then 'INAC' else 'ACTV' end as status,
    nullif(xpath_string(line, 'Action/Customer/@C_TAX_ID'), '') as tax_id,
    nullif(xpath_string(line, 'Action/Customer/Name/C_L_NAME'), '') as last_name,
    nullif(xpath_string(line, 'Action/Customer/Name/C_F_NAME'), '') as first_name,
    nullif(xpath_string(line, 'Action/Customer/@C_TIER'), '') as tier,
    nullif(xpath_string(line, 'Action/Customer/@C_DOB'), '') as dob,
    nullif(xpath_string(line, 'Action/Customer/Address/C_ADLINE1'), '') as address_line1,
    nullif(xpath_string(line, 'Action/Customer/Address/C_ZIPCODE'), '') as postal_code,
    nullif(xpath_string(line, 'Action/Customer/Address/C_CITY'), '') as city,
    nullif(xpath_string(line, 'Action/Customer/ContactInfo/C_PRIM_EMAIL'), '') as email,
    nullif(xpath_string(line, 'Action/Customer/TaxInfo/C_LCL_TX_ID'), '') as local_tax_id,
    nullif(xpath_string(line, 'Action/Customer/TaxInfo/C_NAT_TX_ID'), '') as national_tax_id
  from {{ ref('brz_customer_mgmt') }}
  where action_type in ('NEW', 'UPDCUST', 'INACT')
  union all
  select
    c_id, cast(date_add(date '2017-07-07', cast(cdc_dsn div 100000000 as int)) as timestamp_ntz), cdc_dsn,
    case when cdc_flag = 'D' then 'INAC' else c_st_id end,
    c_tax_id, c_l_name, c_f_name, cast(c_tier as string), cast(c_dob as string), c_adline1, c_zipcode, c_city,
    c_email_1, c_lcl_tx_id, c_nat_tx_id
  from {{ ref('brz_customer') }}
)
select
  customer_id,
  changed_at as effective_from,
  lead(changed_at) over known as effective_to,
  status,
  last_value(tax_id, true) over known as tax_id,
  last_value(last_name, true) over known as last_name,
  last_value(first_name, true) over known as first_name,
  cast(last_value(tier, true) over known as int) as tier,
  cast(last_value(dob, true) over known as date) as dob,
  last_value(address_line1, true) over known as address_line1,
  last_value(postal_code, true) over known as postal_code,
  last_value(city, true) over known as city,
  last_value(email, true) over known as email,
  last_value(local_tax_id, true) over known as local_tax_id,
  last_value(national_tax_id, true) over known as national_tax_id
from changes
window known as (partition by customer_id order by changed_at, cdc_dsn)
