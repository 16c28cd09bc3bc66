"""The feed's tables as they are now, in DuckDB, and their changes as updates: the old row minus, the new row plus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.tpch.feed import KEYS

_COLUMNS = {
    "nation": ("n_nationkey", "n_name"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "part": ("p_partkey", "p_name"),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_supplycost"),
    "customer": ("c_custkey", "c_name", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority", "o_totalprice"),
    "lineitem": (
        *("l_orderkey", "l_partkey", "l_suppkey", "l_quantity"),
        *("l_extendedprice", "l_discount", "l_shipdate"),
    ),
}
"""What the dataflow holds, in its order."""
_CHANGING = ("orders", "lineitem")
_DECIMALS = ("l_quantity", "l_extendedprice", "l_discount", "o_totalprice", "ps_supplycost")
_DATES = ("o_orderdate", "l_shipdate")
_ANSWERS = {
    "q03": ("l_orderkey BIGINT", "revenue DECIMAL(38, 4)", "o_orderdate DATE", "o_shippriority INTEGER"),
    "q09": ("nation VARCHAR", "o_year BIGINT", "sum_profit DECIMAL(38, 4)"),
    "q18": (
        *("c_name VARCHAR", "c_custkey BIGINT", "o_orderkey BIGINT", "o_orderdate DATE"),
        *("o_totalprice DECIMAL(15, 2)", "quantity DECIMAL(38, 2)"),
    ),
}
"""The dataflow's columns, and the types of the SQL's. Its dates are days since 1970."""


class Tables:
    """The tables of a ``RefreshFeed`` in ``folder``, which has made no refresh yet."""

    def __init__(self, folder: Path, generated: Path) -> None:
        """``generated``: the tables' Parquet files before any refresh."""
        self._folder = folder
        self._files = folder / "updates"
        self._files.mkdir(parents=True, exist_ok=True)
        self._taken = {name: set((folder / name).iterdir()) for name in _CHANGING}
        file = folder / "tables.duckdb"
        file.unlink(missing_ok=True)
        self._database = duckdb.connect(str(file))
        self._database.execute("CREATE SCHEMA tpch")
        for name in _COLUMNS:
            kind = "TABLE" if name in _CHANGING else "VIEW"
            source = f"read_parquet('{generated / name}.parquet')"
            self._database.execute(f"CREATE {kind} tpch.{name} AS SELECT {_kept(name)} FROM {source}")

    def all(self) -> dict[str, Path]:
        """A file of updates for each table, with all of its rows."""
        return {name: self._write(name, f"SELECT 1 AS diff, * FROM tpch.{name}") for name in _COLUMNS}

    def advance(self) -> dict[str, Path]:
        """Takes in what the feed has written since; the updates of each table that it changes, as a file."""
        return {name: self._advance(name) for name in _CHANGING}

    def _advance(self, name: str) -> Path:
        new = sorted(set((self._folder / name).iterdir()) - self._taken[name])
        self._taken[name].update(new)
        keys = ", ".join(KEYS[name])
        self._database.execute(
            f"CREATE OR REPLACE TEMP TABLE records AS SELECT * FROM read_parquet({[str(file) for file in new]}) "
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY seq DESC) = 1"
        )
        old = f"FROM tpch.{name} WHERE ({keys}) IN (SELECT ({keys}) FROM records)"
        put = "FROM records WHERE op = 'u'"
        columns = ", ".join(_COLUMNS[name])
        file = self._write(name, f"SELECT -1 AS diff, {columns} {old} UNION ALL SELECT 1, {columns} {put}")
        self._database.execute(f"DELETE {old}")
        self._database.execute(f"INSERT INTO tpch.{name} SELECT {_kept(name)} {put}")
        return file

    def _write(self, name: str, updates: str) -> Path:
        file = self._files / f"{name}.csv"
        columns = ", ".join(map(_sent, _COLUMNS[name]))
        self._database.execute(f"COPY (SELECT diff, {columns} FROM ({updates})) TO '{file}' (FORMAT csv, HEADER false)")
        return file

    def load_answer(self, query: str, file: Path) -> str:
        """The dataflow's answer, which lies in the file, as a table; its name."""
        columns = [column.split(" ", 1) for column in _ANSWERS[query]]
        read = {name: "INTEGER" if kind == "DATE" else kind for name, kind in columns}
        shown = (f"DATE '1970-01-01' + {name} AS {name}" if kind == "DATE" else name for name, kind in columns)
        self._database.execute(
            f"CREATE OR REPLACE TEMP TABLE {query} AS SELECT {', '.join(shown)} "
            f"FROM read_csv('{file}', header = false, auto_detect = false, columns = {read})"
        )
        return query

    def differences(self, left: str, right: str, views: Mapping[str, Any] | None = None) -> int:
        """How many rows one of two queries has and the other has not. ``views``: Arrow tables that they read."""
        for name, table in (views or {}).items():
            self._database.register(name, table)
        both = ((left, right), (right, left))
        counts = (f"(SELECT count(*) FROM (({one}) EXCEPT ALL ({other})))" for one, other in both)
        return int(self._database.execute(f"SELECT {' + '.join(counts)}").fetchall()[0][0])


def _kept(name: str) -> str:
    """The columns of a table as it is held here: its key, and what the dataflow holds."""
    return ", ".join(dict.fromkeys((*KEYS[name], *_COLUMNS[name])))


def _sent(column: str) -> str:
    """The column's values as the dataflow has them: numbers in hundredths, dates as days since 1970."""
    if column in _DECIMALS:
        return f"({column} * 100)::BIGINT"
    return f"{column} - DATE '1970-01-01'" if column in _DATES else column
