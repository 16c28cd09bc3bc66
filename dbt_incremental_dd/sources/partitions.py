"""Columns whose values are in the names of folders, ``day=2024-01-01/``, as Hive and Spark write them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.arrow import arrow_type

_NULL = "__HIVE_DEFAULT_PARTITION__"

Partition = tuple[tuple[str, str | None], ...]
"""The columns and the texts of their values, from the outermost folder inwards."""


class Unclear(ValueError):
    """A value's text is one that Spark has to make a value of."""


_PARSERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "string": (r".+", str),
    **dict.fromkeys(("byte", "short", "integer", "long"), (r"-?(0|[1-9][0-9]{0,17})", int)),
    "boolean": (r"true|false", lambda text: text == "true"),
    "date": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", datetime.date.fromisoformat),
}


def value_of(text: str | None, dtype: str) -> Any:
    """A partition column's value by its text, where every reader sees the same in it. Raises Unclear elsewhere."""
    if text is None:
        return None
    pattern, parse = _PARSERS.get(dtype, (r"$.", str))
    if not re.fullmatch(pattern, text, re.DOTALL):
        raise Unclear(text)
    return parse(text)


def partition_of(name: str) -> Partition:
    """The partition of a file, by its path below the source's folder."""
    found = (part.split("=", 1) for part in name.split("/")[:-1] if "=" in part)
    return tuple((_unescaped(key), None if text == _NULL else _unescaped(text)) for key, text in found)


def _unescaped(text: str) -> str:
    """Every %XX is a character, not a byte of UTF-8."""
    return unquote(text, encoding="latin-1")


def is_partitioned(names: Iterable[str]) -> bool:
    """Whether any of the files is in a folder that gives a column's value."""
    return any(partition_of(name) for name in names)


def without(schema: Schema, partition: Partition) -> Schema:
    """The columns that the files of a partition hold themselves."""
    given = {key.lower() for key, _ in partition}
    return Schema(tuple(column for column in schema if column.name.lower() not in given))


def completed(table: pa.Table, schema: Schema, partition: Partition) -> pa.Table:
    """A partition's rows with all columns of ``schema``. Raises Unclear, and Arrow's errors, as ``value_of`` does."""
    given = {key.lower(): text for key, text in partition}
    columns = []
    for column in schema:
        if column.name.lower() in given:
            value = pa.scalar(value_of(given[column.name.lower()], column.type), arrow_type(column.type))
            columns.append(pa.chunked_array([pa.repeat(value, table.num_rows)]))
        else:
            columns.append(table[column.name])
    return pa.table(columns, list(schema.names))
