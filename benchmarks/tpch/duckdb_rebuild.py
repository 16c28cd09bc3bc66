"""What a user would run instead: DuckDB builds the tables of all queries anew from the sources' Parquet files.

The files are those before any refresh: refreshed ones would be as large.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import duckdb

from benchmarks.tpch.feed import KEYS


class DuckDBRebuild:
    """A database file with a view of each source, and a table of each query."""

    def __init__(self, file: Path, generated: Path, queries: Mapping[str, str]) -> None:
        """``generated``: the folder of the sources' files; ``queries``: by the names of their tables."""
        file.unlink(missing_ok=True)
        self._database = duckdb.connect(str(file))
        self._database.execute("CREATE SCHEMA tpch")
        for name in KEYS:
            files = str(generated / f"{name}.parquet")
            self._database.execute(f"CREATE VIEW tpch.{name} AS SELECT * FROM read_parquet('{files}')")
        self._queries = queries

    def run(self) -> dict[str, float]:
        """The seconds of each table."""
        found = {}
        for name, sql in self._queries.items():
            started = time.monotonic()
            self._database.execute(f"CREATE OR REPLACE TABLE {name} AS {sql}")
            found[name] = time.monotonic() - started
        return found
