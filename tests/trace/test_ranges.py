"""Large traces are merged range by range: the sums stay, and so do files that nothing falls into."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.types import DATE, DOUBLE, INTEGER, STRING, Type
from dbt_incremental_dd.trace import compact
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.compact import compact_trace
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.write import write_arrow

SINCE = 5
FEW = Thresholds(local_rows=0)
"""Nothing is merged as a whole."""
Update = tuple[Any, str | None, int, int]


def never() -> SparkSession:
    raise AssertionError("the driver can do it")


def log_of(folder: Path, kind: Type, parts: Sequence[Sequence[Update]]) -> Log:
    """A trace of one file for each part: key, value, time, diff."""
    place = Storage(str(folder), thresholds=FEW).collection("m.kept")
    columns = (Column("k", kind), Column("v", STRING), TIME_COLUMN, DIFF_COLUMN)
    log = place.create(Schema(columns))
    return log.commit(Commit(add=tuple(written(log, folder, kind, part) for part in parts), upper=9))


def written(log: Log, folder: Path, kind: Type, part: Sequence[Update]) -> Any:
    arrow = {INTEGER: pa.int32(), STRING: pa.string(), DATE: pa.date32(), DOUBLE: pa.float64()}[kind]
    types = [("k", arrow), ("v", pa.string()), ("dd_time", pa.int64()), ("dd_diff", pa.int64())]
    arrays = [pa.array([update[i] for update in part], dtype) for i, (_, dtype) in enumerate(types)]
    table = pa.table(arrays, pa.schema(types)).sort_by("k")
    return write_arrow(Storage(str(folder)), log.uri, table, log.schema, ("k",) if kind != DOUBLE else ())


def sums(folder: Path, log: Log) -> list[Counter[tuple[Any, ...]]]:
    """The contents at each time from ``since`` on."""
    found = read_files(Storage(str(folder)), log.uri, log.files, log.schema).to_pylist()
    at = []
    for t in range(SINCE, 9):
        rows: Counter[tuple[Any, ...]] = Counter()
        for row in found:
            rows[row["k"], row["v"]] += row[DIFF] if row["dd_time"] <= t else 0
        at.append(Counter({row: count for row, count in rows.items() if count}))
    return at


def merged(folder: Path, log: Log) -> Log:
    return compact_trace(never, Storage(str(folder), thresholds=FEW), log, SINCE, (DIFF,), ("k", "v")).log


KEYS: dict[Type, Any] = {
    INTEGER: lambda n: n,
    STRING: lambda n: f"{n:04d}ä",
    DATE: lambda n: date(2024, 1, 1) + timedelta(n),
}


@pytest.mark.parametrize("kind", KEYS, ids=str)
@pytest.mark.parametrize("seed", range(15))
def test_contents_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Type, seed: int) -> None:
    monkeypatch.setattr(compact, "ROWS_PER_FILE", 25)
    rng = random.Random(seed)
    key = KEYS[kind]
    parts: list[list[Update]] = []
    for i in range(6):  # ranges, of which each may begin with the former one's last key
        rows = [key(rng.randint(10 * i + (i % 2), 10 * i + 10)) for _ in range(rng.choice((20, 20, 5)))]
        parts.append([(k, rng.choice(("a", None)), 1, rng.choice((1, 1, 2))) for k in rows])
    there = [update for part in parts for update in part]
    for t in range(2, 8):
        gone = [(k, v, t, -1) for k, v, _, diff in rng.sample(there, rng.randint(0, 4)) if diff > 0]
        new = [(rng.choice((None, key(rng.randint(-3, 70)))), rng.choice("ab"), t, 1) for _ in range(rng.randint(0, 3))]
        if gone or new:
            parts.append([*gone, *new])
            there += parts[-1]
    log = log_of(tmp_path, kind, parts)
    found = merged(tmp_path, log)
    assert sums(tmp_path, found) == sums(tmp_path, log)
    assert found.frontiers.since == SINCE
    again = merged(tmp_path, found)
    assert sums(tmp_path, again) == sums(tmp_path, log)


def test_what_nothing_falls_into_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "ROWS_PER_FILE", 10)
    large = [[(10 * i + n, "a", 1, 1) for n in range(10)] for i in range(5)]
    log = log_of(tmp_path, INTEGER, [*large, [(23, "a", 2, -1), (44, "b", 3, 1)]])
    before = {file.path for file in log.files}
    found = merged(tmp_path, log)
    stays = [file for file in found.files if file.path in before]
    assert sorted(file.bounds["k"] for file in stays) == [(0, 9), (10, 19), (30, 39)]
    assert sorted(file.rows for file in found.files if file.path not in before) == [1, 9, 10]
    assert merged(tmp_path, found).files == found.files


def test_a_key_at_the_end_of_two_files_is_merged_with_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "ROWS_PER_FILE", 5)
    parts = [[(n, "a", 1, 1) for n in range(5)], [(n, "b", 1, 1) for n in range(4, 9)], [(4, "a", 2, -1)]]
    found = merged(tmp_path, log_of(tmp_path, INTEGER, parts))
    assert sum(file.rows for file in found.files) == 9
    assert all(file.inserts_only for file in found.files)


@pytest.mark.parametrize(
    "parts",
    [
        [[(n, "a", 1, 1) for n in range(9)], [(n, "b", 1, 1) for n in range(4, 12)]],
        [[(None, "a", 1, 1), (1, "a", 1, 1)], [(None, "a", 2, -1), (3, "a", 1, 1)]],
    ],
    ids=["overlapping", "NULL"],
)
def test_what_forms_no_ranges_is_spark_s(tmp_path: Path, parts: Sequence[Sequence[Update]]) -> None:
    with pytest.raises(AssertionError, match="the driver can do it"):
        merged(tmp_path, log_of(tmp_path, INTEGER, parts))


def test_keys_without_bounds_are_spark_s(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the driver can do it"):
        merged(tmp_path, log_of(tmp_path, DOUBLE, [[(float(n), "a", 1, 1)] for n in range(3)]))
