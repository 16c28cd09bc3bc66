"""Spark's rows of a trace with few retractions are the sums of its updates, whichever of them are summed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, INTEGER, STRING
from dbt_incremental_dd.trace import spark_multiset
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.spark_multiset import multiset
from dbt_incremental_dd.trace.write import write_arrow

COLUMNS = Schema((Column("k", INTEGER), Column("Odd `name`", STRING), Column("x", DOUBLE)))
ARROW = pa.schema([("k", pa.int32()), ("Odd `name`", pa.string()), ("x", pa.float64())])
TIMED = pa.schema([*ARROW, ("dd_time", pa.int64()), ("dd_diff", pa.int64())])
Row = tuple[Any, str | None, float | None]
Update = tuple[Any, str | None, float | None, int, int]


def log_of(folder: Path, parts: Sequence[Sequence[Update]]) -> Log:
    """A trace of one file for each part: the columns, time, diff."""
    storage = Storage(str(folder))
    log = storage.collection("m.kept").create(Schema((*COLUMNS.columns, TIME_COLUMN, DIFF_COLUMN)))
    files = []
    for part in parts:
        arrays = [pa.array([update[i] for update in part], field.type) for i, field in enumerate(TIMED)]
        table = pa.table(arrays, TIMED)
        files.append(write_arrow(storage, log.uri, table, log.schema, ("k", "Odd `name`", "x")))
    return log.commit(Commit(add=tuple(files), upper=9))


def trace(chance: random.Random, *, nulls: bool) -> list[list[Update]]:
    """Files of insertions, and some in which former rows go and come."""
    values = [0, 1, 2, 3, None] if nulls else [0, 1, 2, 3]
    there: Counter[Row] = Counter()
    parts: list[list[Update]] = []
    for time in range(1, 9):
        base = 10 * chance.randrange(3)
        rows = [
            (
                None if chance.choice(values) is None else base + chance.randrange(9),
                f"v{chance.choice(values)}",
                chance.choice([0.0, -0.0, 1.5, None]),
            )
            for _ in range(8)
        ]
        part = [(*row, time, chance.choice([1, 1, 2])) for row in rows]
        if time > 3 and chance.random() < 0.7:
            part += [(*row, time, -chance.randint(1, count)) for row, count in chance.sample(list(there.items()), 3)]
        for *row, _, diff in part:
            there[tuple(row)] += diff
        there = +there
        parts.append(part)
    return parts


def rows_of(parts: Sequence[Sequence[Update]], t: int) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for *row, time, diff in (update for part in parts for update in part):
        found[tuple(row)] += diff if time <= t else 0
    return +found


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_the_sums(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(spark_multiset, "_SHARE", 0)
    chance = random.Random(seed)
    parts = trace(chance, nulls=seed % 3 == 2)
    log = log_of(tmp_path, parts)
    for t in (2, 5, 8):
        found: Counter[Row] = Counter()
        for row in multiset(spark, log.uri, log.summands(t), COLUMNS, t).collect():
            assert row[DIFF] >= 1
            found[row["k"], row["Odd `name`"], row["x"]] += row[DIFF]
        assert found == rows_of(parts, t)


def test_only_what_retractions_may_meet_is_summed(spark: SparkSession, tmp_path: Path) -> None:
    large = [[(base + i, "a", None, 1, 1) for i in range(100)] for base in (0, 1000)]
    log = log_of(tmp_path, [*large, [(5, "a", None, 2, -1), (5, "b", None, 2, 1)]])
    found = multiset(spark, log.uri, log.files, COLUMNS, 2)
    rows = Counter((row["k"], row["Odd `name`"]) for row in found.collect())
    assert rows == Counter([(k, "a") for base in (0, 1000) for k in range(base, base + 100) if k != 5] + [(5, "b")])
