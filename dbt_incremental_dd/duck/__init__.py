"""DuckDB: its connections, and its SQL."""
