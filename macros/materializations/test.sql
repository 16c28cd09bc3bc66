{#
  As dbt's; in dbt build, the sources that a test reads are taken in before it, as models do: it tests what these read.
#}
{% materialization test, adapter='differential' %}
  {%- if flags.WHICH == 'build' and not dd_is_preview() -%}
    {% do adapter.differential_take_in(model, graph, var('dd_time', none), selected_resources) %}
  {%- endif -%}
  {{ return(materialization_test_default()) }}
{% endmaterialization %}
