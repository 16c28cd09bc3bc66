"""The process's own DuckDB, in memory: it reads Parquet files by keys, and computes window functions."""

from __future__ import annotations

from functools import cache

import duckdb


def database() -> duckdb.DuckDBPyConnection:
    """A cursor, to be closed by whoever asks for it."""
    return _database().cursor()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        config={"autoinstall_known_extensions": "false", "parquet_metadata_cache": "true", "TimeZone": "UTC"}
    )
