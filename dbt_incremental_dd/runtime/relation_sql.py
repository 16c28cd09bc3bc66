"""Queries in Spark's SQL for what a collection has: its rows, as of a time too, and its updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.sql_types import sql_type
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.columns import require
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.spark_reader import quote_name

Shape = Literal["rows", "copies", "sums"]
SHAPES: tuple[Shape, ...] = ("rows", "copies", "sums")
"""Each is right for what the ones before it are right for."""


def shape_of(files: Sequence[DataFile]) -> Shape:
    """How updates add up to rows: one by one, as copies, or only when summed."""
    if any(file.min_diff < 1 for file in files):
        return "sums"
    return "copies" if any(file.max_diff > 1 for file in files) else "rows"


def as_of_sql(storage: Storage, name: str, t: Time) -> str:
    """A query for a collection's contents as of ``t``. Raises FrontierError where that is not in its frontiers."""
    log, schema = require(storage, name)
    log.frontiers.require(t, name)
    files = log.summands(t)
    inner = f"({updates_sql(log, files, schema)} WHERE {TIME} <= {t}L)"
    return sum_sql(inner, schema, shape_of(files))


def changes_sql(storage: Storage, name: str, after: Time, up_to: Time) -> str:
    """A query for a collection's updates with ``after < dd_time <= up_to``, no two of which cancel out."""
    log, schema = require(storage, name)
    log.frontiers.require(up_to, name)
    log.frontiers.require(after, name)
    files = between(log.files, after, up_to)
    found = f"{updates_sql(log, files, schema)} WHERE {TIME} > {after}L AND {TIME} <= {up_to}L"
    if not any(file.retracts_all for file in files):
        return found
    columns = f"{_columns(schema)}, {TIME}"
    summed = f"SELECT {columns}, sum({DIFF}) AS {DIFF} FROM ({found}) GROUP BY {columns}"
    return f"{summed} HAVING sum({DIFF}) <> 0"


def _columns(schema: Schema) -> str:
    return ", ".join(quote_name(column.name) for column in schema)


def updates_sql(log: Log, files: Sequence[DataFile], schema: Schema, folder: str | None = None) -> str:
    """A query for the updates of some of the log's files, or of all those linked in a folder."""
    if not files:
        return f"SELECT * FROM ({no_rows_sql(Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN)))})"
    paths = _escaped(spark_uri(folder)) if folder else _glob(spark_uri(log.uri), files)
    return f"SELECT {_columns(schema)}, {TIME}, {DIFF} FROM parquet.{quote_name(paths)}"


def no_rows_sql(schema: Schema) -> str:
    """A query of no rows with these columns."""
    nulls = (f"CAST(NULL AS {sql_type(c.type)}) AS {quote_name(c.name)}" for c in schema)
    return f"SELECT {', '.join(nulls)} LIMIT 0"


def _glob(uri: str, files: Sequence[DataFile]) -> str:
    paths = [file.path for file in files]
    return f"{_escaped(uri)}/{paths[0]}" if len(paths) == 1 else f"{_escaped(uri)}/{{{','.join(paths)}}}"


def _escaped(path: str) -> str:
    return "".join(f"\\{char}" if char in "{}[]*?\\" else char for char in path)


def sum_sql(updates: str, schema: Schema, shape: Shape) -> str:
    """A query for the rows that the updates, a relation or a query in parentheses, add up to."""
    columns = _columns(schema)
    if shape == "rows":
        return f"SELECT {columns} FROM {updates}"
    copies = f"LATERAL VIEW explode(array_repeat(0, CAST({DIFF} AS INT))) dd_copies AS dd_copy"
    if shape == "copies":
        return f"SELECT {columns} FROM {updates} {copies}"
    summed = f"SELECT {columns}, sum({DIFF}) AS {DIFF} FROM {updates} GROUP BY {columns} HAVING sum({DIFF}) > 0"
    return f"SELECT {columns} FROM ({summed}) {copies}"
