"""TPC-H: its 22 queries as models over tables that change."""
