"""Left, semi, anti and full joins whose right side changes: by keys alone, and by conditions on both sides."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.render import outer_join
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONDITIONS = {
    "by_key": "l.k = r.k",
    "by_two": "l.k = r.k AND l.s = r.s",
    "unequal": "l.k = r.k AND l.v <> r.v",
    "between": "l.k = r.k AND l.v >= r.v AND (r.s IS NULL OR l.s < r.s)",
    "safe": "l.k <=> r.k AND l.v > r.v",
    "computed": "l.k = r.k + 1 AND l.v IS DISTINCT FROM r.v",
    "no_key": "l.v < r.v",
}
JOINS = {
    "left": "SELECT l.k, l.v, l.s, r.v AS w, r.s AS t FROM {l} l LEFT JOIN {r} r ON ",
    "semi": "SELECT l.* FROM {l} l LEFT SEMI JOIN {r} r ON ",
    "anti": "SELECT l.* FROM {l} l LEFT ANTI JOIN {r} r ON ",
    "full": "SELECT l.k, l.v, r.k AS o, r.v AS w FROM {l} l FULL JOIN {r} r ON ",
}


def _row(rng: random.Random) -> tuple[Any, ...]:
    """Rows often repeat."""
    return rng.choice([None, 1, 2, 3]), rng.choice([None, 1, 2]), rng.choice([None, "a", "b"])


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_rows_stay_exact(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    monkeypatch.setattr(outer_join, "_FEW", 0)
    tables = {name: Table("k INT, v INT, s STRING") for name in ("l", "r")}
    world = World(spark, tmp_path, tables, Thresholds.of({}, engine))
    in_spark = engine == "spark"
    for condition, on in CONDITIONS.items():
        for join, sql in JOINS.items():
            if not in_spark or (condition, join) in _IN_SPARK:
                world.model(f"{condition}_{join}", sql + on)
    rng = random.Random(7)
    for step in range(4 if in_spark else 6):
        for name in tables if step % 3 else ("r",):
            rows = world.tables[name].rows
            world.delete(name, rng.sample(rows, min(len(rows), 3 if step != 4 else len(rows))))
            world.insert(name, [_row(rng) for _ in range(12 if step in (0, 1, 5) else 2)])
        world.step_exactly(step)


_IN_SPARK = {("by_key", "left"), ("by_two", "semi"), ("unequal", "anti"), ("between", "full")}
"""What takes Spark's ways of all of the above."""
