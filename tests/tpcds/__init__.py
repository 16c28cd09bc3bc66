"""TPC-DS: its 99 queries as models over a slice of its data, against Spark's batch answers."""
