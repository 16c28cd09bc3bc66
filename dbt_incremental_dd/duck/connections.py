"""The process's own DuckDBs, in memory: one reads Parquet files by keys, and computes window functions; the other
computes what users ask for. DuckDB is imported when one of them is first needed."""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING

from dbt_incremental_dd.untrusted.sized import macros

if TYPE_CHECKING:
    import duckdb


def error() -> type[Exception]:
    """What DuckDB raises."""
    import duckdb

    return duckdb.Error


def database() -> duckdb.DuckDBPyConnection:
    """A cursor, to be closed by whoever asks for it."""
    return _database().cursor()


def confined() -> duckdb.DuckDBPyConnection:
    """A cursor of another one, which reaches no file: for SQL that others have written. To be closed as well."""
    return _confined().cursor()


@cache
def _confined() -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(
        config={"autoinstall_known_extensions": "false", "TimeZone": "UTC", "temp_directory": ""}
    )
    for statement in macros():
        connection.execute(statement)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
    connection.execute("SET lock_configuration = true")
    return connection


@cache
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(
        config={"autoinstall_known_extensions": "false", "parquet_metadata_cache": "true", "TimeZone": "UTC"}
    )


# Connections that outlive the module are complained of at the interpreter's end.
for _held in (_confined, _database):
    atexit.register(_held.cache_clear)
