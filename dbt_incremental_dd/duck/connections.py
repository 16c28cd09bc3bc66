"""The process's in-memory DuckDBs: one reads Parquet files by key and computes window functions, the other one computes
users' SQL. DuckDB is imported when the first one is needed."""

from __future__ import annotations

import atexit
import sys
from functools import cache
from typing import TYPE_CHECKING

from dbt_incremental_dd.untrusted.sized import macros

if TYPE_CHECKING:
    import duckdb


def is_imported() -> bool:
    """Whether this process has imported DuckDB."""
    return "duckdb" in sys.modules


def error() -> type[Exception]:
    """The base class of DuckDB's errors."""
    import duckdb

    return duckdb.Error


def database() -> duckdb.DuckDBPyConnection:
    """A cursor. The caller closes it."""
    return _database().cursor()


def confined() -> duckdb.DuckDBPyConnection:
    """A cursor of a DuckDB that cannot access files, for SQL written by others. The caller closes it."""
    return _confined().cursor()


def spilling(folder: str, memory: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB of its own, which keeps in a folder what does not fit into so many bytes. The caller closes it."""
    import duckdb

    limits: dict[str, str | bool | int | float | list[str]] = {"temp_directory": folder, "memory_limit": f"{memory}B"}
    return duckdb.connect(config={"autoinstall_known_extensions": "false", "TimeZone": "UTC", **limits})


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


# DuckDB warns of connections that outlive the module at the interpreter's end.
for _held in (_confined, _database):
    atexit.register(_held.cache_clear)
