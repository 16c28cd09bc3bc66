"""Tables on the driver: read, consolidated, looked up, and handed to Spark without losing a row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import LongType, StringType, StructType

from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, LONG, STRING
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.local import consolidate_local, local_frame, lookup_local, read_local
from dbt_incremental_dd.trace.write import write_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = StructType().add("k", LongType()).add("v", StringType())


def table(*chunks: list[tuple[int | None, str | None]]) -> pa.Table:
    """A table of these chunks, empty ones included."""
    types = pa.schema([("k", pa.int64()), ("v", pa.string())])
    batches = [pa.record_batch([[k for k, _ in rows], [v for _, v in rows]], schema=types) for rows in chunks]
    return pa.Table.from_batches(batches, types)


def test_an_empty_first_chunk_loses_no_rows(spark: SparkSession) -> None:
    rows = table([], [(1, "a"), (2, None)], [], [(3, "c")])
    found = local_frame(spark, rows, SCHEMA)
    assert sorted(tuple(row) for row in found.collect()) == [(1, "a"), (2, None), (3, "c")]


def test_an_empty_table_keeps_its_columns(spark: SparkSession) -> None:
    assert local_frame(spark, table(), SCHEMA).schema == SCHEMA


def test_equal_rows_are_summed_and_zeros_dropped() -> None:
    rows = table([(1, "a"), (None, None), (2, "b")], [(1, "a"), (None, None), (2, "b")])
    rows = rows.append_column("dd_diff", pa.array([1, 1, 1, 2, 1, -1]))
    found = consolidate_local(rows, ["dd_diff"])
    assert sorted(map(repr, found.to_pylist())) == [
        "{'k': 1, 'v': 'a', 'dd_diff': 3}",
        "{'k': None, 'v': None, 'dd_diff': 2}",
    ]


def test_floats_are_equal_where_spark_says_so() -> None:
    nan, other_nan = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    rows = pa.table({"v": pa.array([0.0, -0.0, nan, other_nan, None, None, 1.5]), "dd_diff": [1, 1, 1, -1, 1, 1, -2]})
    found = consolidate_local(rows, ["dd_diff"])
    assert sorted(map(repr, found.to_pylist())) == [
        "{'v': 0.0, 'dd_diff': 2}",
        "{'v': 1.5, 'dd_diff': -2}",
        "{'v': None, 'dd_diff': 2}",
    ]


def test_a_column_with_nan_has_no_statistics(tmp_path: Path) -> None:
    """Spark would skip row groups by them: NaN > 1.0 there, and Arrow counts it neither as minimum nor as maximum."""
    rows = pa.table({"a": [0.5, math.nan, None], "b": [0.5, None, 1.0], "dd_time": [1, 1, 1], "dd_diff": [1, 1, 1]})
    schema = Schema((Column("a", DOUBLE), Column("b", DOUBLE), TIME_COLUMN, DIFF_COLUMN))
    file = write_arrow(Storage(str(tmp_path)), str(tmp_path), rows, schema)
    group = pq.read_metadata(tmp_path / file.path).row_group(0)
    known = [group.column(i).statistics for i in range(4)]
    assert [stats is not None and stats.has_min_max for stats in known] == [False, True, True, True]
    assert (file.first, file.last) == (1, 1)


def test_no_values_match_nothing(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    schema = Schema((Column("k", LONG), Column("v", STRING)))
    file = write_arrow(storage, str(tmp_path), table([(1, "a"), (2, "b"), (None, "c")]), schema)
    found = {name: read_local(storage, str(tmp_path), [file], schema, {name: values}).num_rows for name, values in KEYS}
    assert found == {"v": 0, "k": 1}


KEYS: list[tuple[str, list[object]]] = [("v", []), ("k", [2, 9])]


def test_lookup_finds_null_keys_and_leaves_gaps() -> None:
    found = lookup_local(table([(2, "x"), (None, "y"), (9, "z")]), table([(None, "n"), (2, "b")]), ["k"], ["v"])
    assert found["v"].to_pylist() == ["b", "n", None]
