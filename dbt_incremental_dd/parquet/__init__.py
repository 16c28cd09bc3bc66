"""Parquet files read by key: page indexes, checksums, probes."""
