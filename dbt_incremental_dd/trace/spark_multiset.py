"""A trace's rows in Spark. Where few updates are retractions, only what they may belong to is summed: all other
insertions are rows as they are, so that Spark reads of them only the columns that are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.spark_reader import consolidate, in_interval, no_rows, quote_name, struct, updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST = 4_000_000
"""Rows of files with retractions, whose values are sent to each task."""
_SHARE = 8
"""How many times as many all files have to have."""
_COLUMNS = 6
"""Of which rows are compared with retractions: enough to tell most rows apart, few to read of all rows."""


def multiset(spark: SparkSession, uri: str, files: Sequence[DataFile], schema: Schema, t: Time) -> DataFrame:
    """The rows that the files' updates up to ``t`` add up to: columns of ``schema``, and ``dd_diff`` of at least 1.
    Equal rows may be several. Raises OSError as ``spark_reader.updates`` does."""
    if not files:
        return no_rows(spark, struct(Schema((*schema.columns, DIFF_COLUMN))))
    mixed = [file for file in files if not file.inserts_only]
    if not mixed:
        return _updates(spark, uri, files, schema, t)
    columns = _bounded(files, schema)
    rows = total_rows(mixed)
    if not columns or rows > _MOST or rows * _SHARE > total_rows(files):
        return consolidate(_updates(spark, uri, files, schema, t))
    beside = [file for file in files if file.inserts_only and not _meets(file, mixed, columns)]
    within = [file for file in files if file not in beside]
    found = _settled(spark, uri, mixed, within, schema, t, columns)
    return found.union(_updates(spark, uri, beside, schema, t)) if beside else found


def _settled(
    spark: SparkSession,
    uri: str,
    mixed: Sequence[DataFile],
    files: Sequence[DataFile],
    schema: Schema,
    t: Time,
    columns: Sequence[str],
) -> DataFrame:
    """The rows of those ``files`` that the ``mixed`` ones' retractions may meet."""
    keys = {name: f"dd_retracted_{number}" for number, name in enumerate(columns)}
    retractions = _updates(spark, uri, mixed, schema.select(tuple(columns)), t).where(f"{DIFF} < 0")
    aliased = (f"{quote_name(name)} AS {key}" for name, key in keys.items())
    retracted = F.broadcast(retractions.selectExpr(*aliased).distinct())
    is_equal = F.expr(" AND ".join(f"{quote_name(name)} = {key}" for name, key in keys.items()))
    found = _updates(spark, uri, files, schema, t)
    summed = consolidate(found.join(retracted, is_equal, "left_semi"))
    return found.join(retracted, is_equal, "left_anti").union(summed)


def _updates(spark: SparkSession, uri: str, files: Sequence[DataFile], schema: Schema, t: Time) -> DataFrame:
    stored = Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN))
    return in_interval(updates(spark, uri, files, stored), files, BEGINNING, t).drop(TIME)


def _bounded(files: Sequence[DataFile], schema: Schema) -> list[str]:
    """Columns that all files have bounds of, so that none of their values is NULL or NaN."""
    return [name for name in schema.names if all(name in file.bounds for file in files)][:_COLUMNS]


def _meets(file: DataFile, others: Sequence[DataFile], columns: Sequence[str]) -> bool:
    """Whether a row of the file may be equal to one of the others', by their bounds."""
    return any(all(_overlap(file.bounds[name], other.bounds[name]) for name in columns) for other in others)


def _overlap(one: tuple[object, object], other: tuple[object, object]) -> bool:
    if type(one[0]) is not type(other[0]):
        return True
    return bool(one[0] <= other[1] and other[0] <= one[1])  # type: ignore[operator]
