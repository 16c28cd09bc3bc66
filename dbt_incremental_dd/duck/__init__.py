"""DuckDB: connections, and SQL texts."""
