{{ config(
    materialized='incremental', incremental_strategy='merge',
    unique_key=['account_id', 'booked_at', 'amount', 'description'],
    post_hook="delete from {{ this }} where times <= 0"
) }}
select ct_ca_id as account_id, ct_dts as booked_at, ct_amt as amount, ct_name as description,
  sum(case when cdc_flag = 'D' then -1 else 1 end) as times, max(loaded_from) as loaded_from
from {{ ref('brz_cash_transaction') }}
{% if is_incremental() %} where ct_ca_id in {{ newer('ct_ca_id', ref('brz_cash_transaction')) }} {% endif %}
group by ct_ca_id, ct_dts, ct_amt, ct_name
