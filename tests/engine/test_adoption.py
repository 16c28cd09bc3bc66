"""Models whose first contents are a table that is there: exact from then on, whatever changes, in whatever order."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import AdoptionError, ConfigError, FrontierError
from dbt_incremental_dd.core.manifest import Adopted, ModelManifest
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.runtime.adopt import Adopt, parse_adopt
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "k INT, s STRING, v BIGINT, d DECIMAL(10,2)"
LATE = {
    "summed": "SELECT k, count(*) AS n, sum(v) AS v, avg(d) AS mean, max(s) AS top FROM {a} GROUP BY k",
    "joined": "SELECT a.k, sum(a.v * b.v) AS v, count(*) AS n FROM {a} a JOIN {b} b ON a.k = b.k GROUP BY a.k",
    "outer_joined": "SELECT a.k, a.s, n FROM {a} a LEFT JOIN (SELECT k, count(*) AS n FROM {b} GROUP BY k) b"
    " ON a.k = b.k",
    "full_joined": "SELECT x.k, y.k AS other, n, m FROM (SELECT k, count(v) AS n FROM {a} GROUP BY k) x"
    " FULL JOIN (SELECT k, min(d) AS m FROM {b} GROUP BY k) y ON x.k = y.k",
    "different": "SELECT DISTINCT s, v % 3 AS rest FROM {a} UNION ALL SELECT DISTINCT s, v % 2 FROM {b}",
    "except": "SELECT k, s FROM {a} EXCEPT ALL SELECT k, s FROM {b}",
    "nested": "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k) GROUP BY n",
    "overall": "SELECT count(*) AS n, sum(v) AS v, max(d) AS top FROM {b}",
    "numbered": "SELECT k, v, sum(v) OVER (PARTITION BY k ORDER BY v) AS running FROM (SELECT DISTINCT k, v FROM {a})",
    "extremes": "SELECT s, min(v) AS low, max(d) AS high FROM {b} GROUP BY s HAVING count(*) > 1",
}
"""States are built when they are needed."""
AT_ONCE = {
    "first_of_each": "SELECT k, v + 1 AS next FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, s, d)"
    " AS place FROM {a}) WHERE place = 1",
    "highest": "SELECT k, v FROM {b} ORDER BY v DESC, k LIMIT 4",
    "lists": "SELECT k, size(collect_list(v)) AS n FROM {a} GROUP BY k",
    "floats": "SELECT k, round(sum(CAST(v AS DOUBLE)), 3) AS v FROM {b} GROUP BY k",
}
"""A state might disagree with the adopted rows: the first change builds the output with it."""
STATELESS = {
    "filtered": "SELECT k, s FROM {a} WHERE v > 2",
    "ranked": "SELECT k, v, rank() OVER (ORDER BY v) AS r FROM {b}",
    "without": "SELECT k, v FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.v > 3)",
}


class Rounds:
    """Random rows that come and go: few keys, NULLs, equal rows."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)

    def change(self, name: str, most: int) -> None:
        """Some rows come, and some that are there go."""
        table = self.world.tables[name]
        self.world.insert(name, [self._row() for _ in range(self.rng.randint(1, most))])
        self.world.delete(name, self.rng.sample(table.rows, min(len(table.rows), self.rng.randint(0, most // 2))))

    def _row(self) -> tuple[Any, ...]:
        rng = self.rng
        cents = rng.choice([None, 0, 5, 250, -199])
        d = None if cents is None else Decimal(cents) / 100
        return rng.choice([None, 1, 2, 3, 4, 5, 6]), rng.choice([None, "a", "b", "é"]), rng.choice([None, 0, 1, 3, 7]), d


def adopted_world(
    spark: SparkSession, folder: Path, models: dict[str, str], thresholds: Thresholds | None = None, **adopt: Any
) -> World:
    """Models over tables ``a``, ``b`` with rows, each taken over from a table of its own name that Spark has made."""
    world = World(spark, folder, {name: Table(DDL) for name in "ab"}, thresholds)
    rounds = Rounds(world, 5)
    for name in "ab":
        rounds.change(name, 40)
    for name, sql in models.items():
        world.model(name, sql)
        world.batch(name).write.saveAsTable(f"{world.schema}.{name}")
    outcomes = world.step(adopt=Adopt(**adopt))
    assert {one.strategy for one in outcomes.values()} == {"adopt"}
    return world


def manifest(world: World, name: str) -> ModelManifest:
    """The model's."""
    place = world.storage.collection(f"{world.schema}.{name}")
    log = place.log()
    assert log is not None
    found = place.read_manifest(log.manifest)
    assert isinstance(found, ModelManifest)
    return found


@pytest.mark.parametrize("in_spark", [False, True], ids=["driver", "spark"])
def test_every_change_after_it_is_exact(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, in_spark: bool
) -> None:
    thresholds = request.getfixturevalue("in_spark") if in_spark else None
    models = LATE if in_spark else LATE | AT_ONCE | STATELESS
    world = adopted_world(spark, tmp_path, models, thresholds, verify="whole")
    world.check()
    assert {name for name in models if manifest(world, name).unbuilt} == set(LATE)
    rounds = Rounds(world, 7)
    for step, changed in enumerate(["a", "b"] if in_spark else ["a", "b", "ab", "b"]):
        for name in changed:
            rounds.change(name, 8)
        outcomes = world.step(strategy="delta")
        world.check()
        if not step:
            assert {outcomes[name].strategy for name in [*LATE, *STATELESS] if name in outcomes} <= {"delta", "skip"}
            assert {outcomes[name].strategy for name in AT_ONCE if name in outcomes} <= {"rebuild", "skip"}
    assert not any(manifest(world, name).unbuilt for name in models)
