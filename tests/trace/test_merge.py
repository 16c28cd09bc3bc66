"""What the driver merges is what Spark merges: the updates of equal rows added up, times before since become one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Field,
    Struct,
    Type,
)
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.compact import Compaction, compact_trace
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.merge import merged
from dbt_incremental_dd.trace.write import write_arrow

VALUES: dict[Type, list[Any]] = {
    LONG: [None, 0, -(2**63), 2**63 - 1],
    INTEGER: [None, 7],
    STRING: [None, "", "a", "ä\0", "Z"],
    BINARY: [None, b"", b"\0\xff"],
    BOOLEAN: [None, True, False],
    DOUBLE: [None, -0.0, 0.0, float("nan"), float("inf"), 1.5],
    FLOAT: [None, -0.0, 0.0, float("nan")],
    DATE: [None, date(1, 1, 1), date(9999, 12, 31)],
    TIMESTAMP: [None, datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC)],
    TIMESTAMP_NTZ: [None, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)],
    Decimal(38, 2): [None, Number("0.00"), Number("-999999999999999999999999999999999999.99")],
    Struct((Field("x", LONG), Field("y", STRING))): [None, {"x": None, "y": None}, {"x": 1, "y": "b"}],
}
SUM = Column("dd_a0", Decimal(38, 3))
SINCE = 5


def log_of(folder: Path, types: Sequence[Type], seed: int, thresholds: Thresholds, size: int = 60) -> Log:
    """Files of updates of few distinct rows, so that many add up, at times below since and above it."""
    rng = random.Random(seed)
    columns = tuple(Column(f"{'c' * (i % 2)}C{i}", dtype) for i, dtype in enumerate(types))
    place = Storage(str(folder), thresholds=thresholds).collection("m.kept")
    log = place.create(Schema((*columns, TIME_COLUMN, DIFF_COLUMN, SUM)))
    rows = [[rng.choice(VALUES[dtype]) for dtype in types] for _ in range(4)]
    files = []
    for first in (1, 4):
        updates = [[*rng.choice(rows), rng.randint(first, first + 3), rng.choice((1, -1))] for _ in range(size)]
        summed = [[*update, Number(rng.choice(("0.000", "0.125"))) * update[-1]] for update in updates]
        fields = [(column.name, arrow_type(column.type)) for column in log.schema]
        arrays = [pa.array([row[i] for row in summed], dtype) for i, (_, dtype) in enumerate(fields)]
        table = pa.table(arrays, pa.schema(fields))
        files.append(write_arrow(place.storage, log.uri, table, log.schema))
    return log.commit(Commit(add=tuple(files), upper=9))


def compacted(folder: Path, spark: Any, thresholds: Thresholds, types: Sequence[Type], seed: int) -> Compaction:
    log = log_of(folder, types, seed, thresholds)
    storage = Storage(str(folder), thresholds=thresholds)
    return compact_trace(spark, storage, log, SINCE, (DIFF, SUM.name), tuple(log.schema.names[:1]))


def rows_of(folder: Path, log: Log, files: Sequence[DataFile] = ()) -> list[tuple[Any, ...]]:
    """With -0.0 as 0.0, and NaN equal to itself."""
    table = read_files(Storage(str(folder)), log.uri, files or log.files, log.schema)
    return [tuple(map(_comparable, row.values())) for row in table.to_pylist()]


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return tuple(value.items()) if isinstance(value, dict) else value


def never() -> SparkSession:
    raise AssertionError("the driver can do it")


KINDS = list(VALUES)
MIXED = [[kind, *random.Random(str(kind)).sample(KINDS, 2)] for kind in KINDS]


@pytest.mark.parametrize("types", MIXED, ids=lambda types: str(types[0])[:20])
def test_it_is_what_spark_merges(spark: SparkSession, tmp_path: Path, types: list[Type]) -> None:
    for seed in range(2):
        here, there = tmp_path / f"driver{seed}", tmp_path / f"spark{seed}"
        ours = compacted(here, never, Thresholds(), types, seed)
        theirs = compacted(there, lambda: spark, Thresholds(local_rows=0), types, seed)
        found = rows_of(here, ours.log)
        assert Counter(found) == Counter(rows_of(there, theirs.log)) and 0 < len(found) < 120
        assert len({row[:-2] for row in found}) == len(found)
        assert ours.updates_after == theirs.updates_after == len(found) and ours.log.frontiers.since == SINCE


def test_large_outputs_become_files_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_incremental_dd.trace.compact.ROWS_PER_FILE", 7)
    log = compacted(tmp_path, never, Thresholds(), [LONG, STRING, DOUBLE, INTEGER], 3).log
    assert len(log.files) > 1 and all(file.rows <= 7 for file in log.files)
    parts = [[_order(row[0]) for row in rows_of(tmp_path, log, (file,))] for file in log.files]
    assert [key for part in sorted(parts) for key in part] == sorted(key for part in parts for key in part)


def _order(key: int | None) -> tuple[bool, int]:
    return key is None, key or 0


@pytest.mark.parametrize("limit", [Thresholds(local_rows=0), Thresholds(local_rows=119)])
def test_more_rows_than_the_driver_takes_are_spark_s(tmp_path: Path, limit: Thresholds) -> None:
    with pytest.raises(AssertionError, match="the driver can do it"):
        compacted(tmp_path, never, limit, [LONG], 1)


def test_sums_that_do_not_fit_are_spark_s(tmp_path: Path) -> None:
    place = Storage(str(tmp_path)).collection("m.kept")
    log = place.create(Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN)))
    most = pa.table({"k": [1], "dd_time": [1], "dd_diff": [2**63 - 1]})
    files = tuple(write_arrow(place.storage, log.uri, most, log.schema) for _ in range(2))
    assert merged(place.storage, log.uri, files[:1], log.schema, SINCE, (DIFF,), ()) is not None
    assert merged(place.storage, log.uri, files, log.schema, SINCE, (DIFF,), ()) is None
