"""Collections read by SQL, without Spark: DuckDB over the files of their traces."""
