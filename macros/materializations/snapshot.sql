{#
  dbt's snapshots: the history of a query's rows, kept by what has changed. One that is a table of a lake format
  is dbt-spark's.
#}
{% materialization snapshot, adapter='differential' %}
  {%- if not adapter.differential_keeps(model) -%}
    {{ return(materialization_snapshot_spark()) }}
  {%- endif -%}
  {{ return(materialization_differential_differential()) }}
{% endmaterialization %}
