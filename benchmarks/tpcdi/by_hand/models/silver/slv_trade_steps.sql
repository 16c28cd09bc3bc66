{{ config(materialized='incremental', incremental_strategy='merge', unique_key='trade_id') }}
select
  th_t_id as trade_id,
  min(th_dts) as created_at,
  max(case when th_st_id in ('CMPT', 'CNCL') then th_dts end) as closed_at,
  count(*) as steps,
  max(loaded_from) as loaded_from
from {{ ref('brz_trade_history') }}
{% if is_incremental() %} where th_t_id in {{ newer('th_t_id', ref('brz_trade_history')) }} {% endif %}
group by th_t_id
