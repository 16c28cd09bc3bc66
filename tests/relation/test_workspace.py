"""Tables of the driver are handed to Spark without losing a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.spark_reader import struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((Column("k", LONG), Column("v", STRING)))


def table(*chunks: list[tuple[int | None, str | None]]) -> pa.Table:
    """A table of these chunks, empty ones included."""
    types = pa.schema([("k", pa.int64()), ("v", pa.string())])
    batches = [pa.record_batch([[k for k, _ in rows], [v for _, v in rows]], schema=types) for rows in chunks]
    return pa.Table.from_batches(batches, types)


def test_an_empty_first_chunk_loses_no_rows(spark: SparkSession) -> None:
    rows = table([], [(1, "a"), (2, None)], [], [(3, "c")])
    found = local_frame(spark, Table(rows, SCHEMA))
    assert sorted(tuple(row) for row in found.collect()) == [(1, "a"), (2, None), (3, "c")]


def test_an_empty_table_keeps_its_columns(spark: SparkSession) -> None:
    assert local_frame(spark, Table(table(), SCHEMA)).schema == struct(SCHEMA)
