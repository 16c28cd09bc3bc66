"""Lake tables that Spark's own connectors write."""
