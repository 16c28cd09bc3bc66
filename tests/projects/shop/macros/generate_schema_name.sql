{% macro generate_schema_name(custom_schema_name, node) %}
  {%- if node.resource_type == 'seed' -%} {{ var('storefront_schema', 'shop_raw') }}
  {%- else -%} {{ target.schema }}{{ '_' ~ (custom_schema_name | trim) if custom_schema_name }}
  {%- endif -%}
{% endmacro %}
