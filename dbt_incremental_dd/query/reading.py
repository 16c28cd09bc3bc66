"""A SELECT's syntax tree, as DuckDB parses it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from dbt_incremental_dd.core.errors import QueryError


@dataclass(frozen=True)
class Reading:
    """``tables``: schema (empty where none is given) and name of each table that it names, in small letters."""

    tables: tuple[tuple[str, str], ...]


def parsed(sql: str) -> Reading:
    """Raises QueryError for anything but one SELECT that only reads."""
    with _lock:
        told = _parser().execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    tree = json.loads(told[0][0])
    if tree.get("error"):
        if "Only SELECT" in str(tree.get("error_message")):
            raise QueryError("only SELECT and SUBSCRIBE are answered: models are written by `dbt run` alone")
        raise QueryError(str(tree.get("error_message")))
    if len(tree["statements"]) != 1:
        raise QueryError("one statement at a time is answered")
    return Reading(tuple(_tables(tree)))


_lock = threading.Lock()


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "256MB", "enable_external_access": False})


def _tables(tree: Any) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE":
            yield str(tree.get("schema_name", "")).lower(), str(tree.get("table_name", "")).lower()
        for value in tree.values():
            yield from _tables(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _tables(value)
