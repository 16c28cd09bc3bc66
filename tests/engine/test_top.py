"""The first rows of everything, from those that are kept: exact while rows come and go, and seldom read anew."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.render import top
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "first": "SELECT v, s FROM {t} ORDER BY v, s LIMIT 3",
    "later": "SELECT v, s FROM {t} ORDER BY v DESC NULLS FIRST, s LIMIT 2 OFFSET 2",
    "none": "SELECT v FROM {t} ORDER BY v LIMIT 0",
    "groups": "SELECT s, count(*) AS n FROM {t} GROUP BY s ORDER BY n DESC, s LIMIT 2",
    "below": "SELECT count(*) AS n, sum(v) AS v FROM (SELECT v FROM {t} ORDER BY v LIMIT 4)",
    "joined": "SELECT x.v, y.s FROM (SELECT v FROM {t} ORDER BY v LIMIT 2) x JOIN {t} y ON x.v = y.v",
}


def _row(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([None, 1, 2, 3, 4, 5, 6]), rng.choice([None, "a", "b"])


@pytest.mark.parametrize("reserve", [1, 4])
def test_it_stays_exact(spark: SparkSession, tmp_path: Path, reserve: int) -> None:
    world = World(spark, tmp_path, {"t": Table("v INT, s STRING")}, Thresholds(kept_rows=reserve))
    for name, sql in MODELS.items():
        world.model(name, sql)
    rng = random.Random(reserve)
    for step in range(10):
        rows = world.tables["t"].rows
        world.delete("t", rng.sample(rows, rng.randint(0, len(rows)) if step % 4 == 3 else min(len(rows), 2)))
        world.insert("t", [_row(rng) for _ in range(rng.randint(0, 12) if step % 3 == 0 else rng.randint(0, 3))])
        world.step_exactly(step)


def test_the_input_is_read_only_where_the_reserve_is_used_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    first = top._first
    monkeypatch.setattr(top, "_first", lambda *args: read.append(world.time) or first(*args))
    world = World(spark, tmp_path, {"t": Table("v INT")}, Thresholds(kept_rows=3))
    world.insert("t", [(v,) for v in range(50)])
    world.model("m", "SELECT v FROM {t} ORDER BY v LIMIT 2")
    world.step()
    for gone in ([0], [7], [1, 2], [3]):
        world.delete("t", [(v,) for v in gone])
        world.insert("t", [(v + 100,) for v in gone])
        world.step()
        world.check()
    assert read == [1_001, 1_005]
