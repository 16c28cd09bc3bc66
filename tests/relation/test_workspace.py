"""Tables of the driver are handed to Spark without losing a row."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING, parse
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


@pytest.mark.parametrize("rows", [1, 20_000])
def test_no_column_is_renamed(spark: SparkSession, capsys: pytest.CaptureFixture[str], rows: int) -> None:
    """A filter over renamed columns takes Spark's optimizer time and memory that double with each of them."""
    moment = datetime.datetime(2024, 1, 1, 12)
    values = {
        "timestamp_ntz": pa.array([moment] * rows, pa.timestamp("us")),
        "timestamp": pa.array([moment] * rows, pa.timestamp("us", "UTC")),
        "char(3)": pa.array(["a  "] * rows),
        '{"containsNull":true,"elementType":"integer","type":"array"}': pa.array([[1, 2]] * rows, pa.list_(pa.int32())),
    }
    schema = Schema(tuple(Column(f"c{i}", parse(kind)) for i, kind in enumerate(values)))
    found = local_frame(spark, Table(pa.table(list(values.values()), list(schema.names)), schema))
    found.explain()
    assert "Project" not in capsys.readouterr().out
    shown = "CAST(c0 AS STRING)", "unix_micros(c1)", "c2", "c3"
    assert found.selectExpr(*shown).distinct().collect() == [
        ("2024-01-01 12:00:00", 1_704_110_400_000_000, "a  ", [1, 2])
    ]
