"""Lake tables as sources: Delta and Iceberg, by what their own logs say."""
