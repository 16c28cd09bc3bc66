"""SQL over collections without Spark: DuckDB reads the files of their traces."""
