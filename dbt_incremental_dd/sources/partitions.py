"""Columns whose values are in the names of folders, ``day=2024-01-01/``, as Hive and Spark write them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import and_, or_
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.plain_text import Unclear
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import BOOLEAN, DATE, INTEGERS, STRING, Type
from dbt_incremental_dd.trace.arrow import arrow_type, sorted_values
from dbt_incremental_dd.trace.spark_reader import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

NULL = "__HIVE_DEFAULT_PARTITION__"

Partition = tuple[tuple[str, str | None], ...]
"""The columns and the texts of their values, from the outermost folder inwards."""


_PARSERS: Mapping[Type, tuple[str, Callable[[str], Any]]] = {
    STRING: (r".+", str),
    **dict.fromkeys(INTEGERS, (r"-?(0|[1-9][0-9]{0,17})", int)),
    BOOLEAN: (r"true|false", lambda text: text == "true"),
    DATE: (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", datetime.date.fromisoformat),
}


def value_of(text: str | None, dtype: Type) -> Any:
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
    return tuple((_unescaped(key), None if text == NULL else _unescaped(text)) for key, text in found)


def _unescaped(text: str) -> str:
    """Every %XX is a character, not a byte of UTF-8."""
    return unquote(text, encoding="latin-1")


def layout(partition: Partition) -> tuple[str, ...]:
    """The columns that a partition gives values of."""
    return tuple(key for key, _ in partition)


def changed_partitions(
    found: Mapping[str, Sequence[int]], seen: Mapping[str, Sequence[int]], schema: Schema | None
) -> set[Partition] | None:
    """The partitions whose files, by their paths below the source's folder, are others than before (``seen``); None
    where rows cannot be told apart by them."""
    if schema is None or not seen:
        return None
    layouts = {layout(partition_of(name)) for name in (*found, *seen)}
    columns = {column.name: column.type for column in schema}
    if len(layouts) != 1 or not all(name in columns for name in next(iter(layouts))):
        return None
    changed = {name for name in (*found, *seen) if found.get(name) != seen.get(name)}
    partitions = {partition_of(name) for name in changed}
    try:
        for key, text in chain.from_iterable(partitions):
            value_of(text, columns[key])
    except Unclear:
        return None
    return partitions


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


def partition_columns(partitions: Sequence[Partition]) -> tuple[str, ...]:
    """The columns that partitions of one layout give values of."""
    return layout(partitions[0]) if partitions else ()


def partition_rows(partitions: Sequence[Partition], schema: Schema) -> pa.Table:
    """The partitions' values, a row each. Raises Unclear."""
    kinds = {column.name: column.type for column in schema}
    columns = zip(*([value_of(text, kinds[key]) for key, text in one] for one in partitions), strict=True)
    names = partition_columns(partitions)
    return pa.table({n: pa.array(v, arrow_type(kinds[n])) for n, v in zip(names, columns, strict=True)})


def bounded_values(partitions: Sequence[Partition], schema: Schema) -> dict[str, list[Any]]:
    """Each column's sorted values in the partitions, where files have bounds for them and none is NULL."""
    rows = partition_rows(partitions, schema)
    found = {name: sorted_values(rows[name]) for name in rows.column_names if not rows[name].null_count}
    return {name: values for name, values in found.items() if values is not None}


def within(partitions: Iterable[Partition], schema: Schema) -> Column:
    """Spark's condition for rows of these partitions. Raises Unclear."""
    kinds = {column.name: column.type for column in schema}

    def one(partition: Partition) -> Column:
        tests = (quoted(key).eqNullSafe(F.lit(value_of(text, kinds[key]))) for key, text in partition)
        return reduce(and_, tests)

    return reduce(or_, map(one, partitions), F.lit(False))
