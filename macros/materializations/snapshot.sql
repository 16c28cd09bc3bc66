{#
  dbt's snapshots: the history of a query's rows, kept by what has changed. One that is a table of a lake format
  is dbt-spark's.
#}
{% materialization snapshot, adapter='differential' %}
  {%- if adapter.differential_is_lake_table(config.get('file_format')) -%}
    {{ return(materialization_snapshot_spark()) }}
  {%- endif -%}
  {{ return(materialization_differential_differential()) }}
{% endmaterialization %}
