"""Random rounds of changes: after each, a foreign reader of the open table sees what the collection has."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.thresholds import Thresholds
from tests.engines import IN_SPARK
from tests.open_table.readers import by_delta_rs, feed_by_delta_rs, plain
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODELS = {
    "rows": "SELECT * FROM {t}",
    "few": "SELECT name, at FROM {t}",
    "sums": "SELECT name, count(*) AS n, sum(amount) AS total, avg(ratio) AS `avg(ratio)` FROM {t} GROUP BY name",
    "nested": "SELECT id % 5 AS id, named_struct('r', ratio, 'n', name) AS s, array(ratio, NULL) AS a FROM {t}",
}
_RATIOS = (0.0, -0.0, float("nan"), None, 0.1)


class Rounds:
    """A table whose rows change at random, and models over it with open tables."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, thresholds: Thresholds, names: list[str]) -> None:
        self.random = random.Random(seed)
        ddl = "id INT, name STRING, amount DECIMAL(8,2), ratio DOUBLE, at TIMESTAMP"
        self.world = World(spark, folder, {"t": Table(ddl)}, thresholds)
        for name in names:
            self.world.model(name, _MODELS[name], output="delta")
        self.versions: dict[str, list[tuple[int, int]]] = {name: [] for name in names}

    def change(self) -> None:
        """Some rows come, some go; many are equal to others. Now and then most go."""
        rows = self.world.tables["t"].rows
        if rows:
            share = 0.9 if self.random.random() < 0.05 else 0.2
            self.world.delete("t", self.random.sample(rows, self.random.randint(0, int(len(rows) * share) + 1)))
        self.world.insert("t", [self._row() for _ in range(self.random.randint(0, 12))])

    def _row(self) -> tuple[Any, ...]:
        at = self.random.choice([None, "2024-02-29 12:00:00.123456", "1969-12-31 23:59:59"])
        return (
            self.random.choice([None, *range(8)]),
            self.random.choice([None, "ann", "bob", "ü'\"`", ""]),
            self.random.choice([None, Decimal("1.00"), Decimal("-2.50")]),
            self.random.choice(_RATIOS),
            None if at is None else __import__("datetime").datetime.fromisoformat(at),
        )

    def collection(self, name: str) -> Collection:
        return Collection(self.world.storage, f"{self.world.schema}.{name}")

    def contents(self, name: str, t: int) -> Counter[tuple[Any, ...]]:
        """The collection's rows as of a time."""
        rows = self.collection(name).as_of(t).to_pylist()
        found: Counter[tuple[Any, ...]] = Counter()
        for row in rows:
            diff = row.pop(DIFF)
            found[tuple(map(plain, row.values()))] += diff
        return found

    def check(self, name: str) -> None:
        """The latest version."""
        collection = self.collection(name)
        uri, columns = collection.place.table_uri, collection.schema.names
        number = DeltaTable(uri).version()
        assert by_delta_rs(uri, columns) == self.contents(name, self.world.time), (name, self.world.time)
        self.versions[name].append((number, self.world.time))

    def check_past(self, name: str) -> None:
        """Each former version, by its number and by its time, and what each one's change feed says."""
        collection = self.collection(name)
        uri, columns = collection.place.table_uri, collection.schema.names
        for number, t in self.versions[name]:
            assert by_delta_rs(uri, columns, number) == self.contents(name, t), (name, number)
        feed = feed_by_delta_rs(uri, columns, 0)
        running: Counter[tuple[Any, ...]] = Counter()
        known = dict(self.versions[name])
        for number in range(DeltaTable(uri).version() + 1):
            for row, diff in feed.get(number, Counter()).items():
                running[row] += diff
            if number in known:
                assert +running == self.contents(name, known[number]), (name, number)


@pytest.mark.parametrize(
    ("thresholds", "seed", "rounds", "names"),
    [
        (Thresholds(), 1, 100, list(_MODELS)),
        pytest.param(IN_SPARK, 2, 8, list(_MODELS), id="in Spark"),
    ],
)
def test_rounds(
    spark: SparkSession, tmp_path: Path, thresholds: Thresholds, seed: int, rounds: int, names: list[str]
) -> None:
    world = Rounds(spark, tmp_path, seed, thresholds, names)
    for _ in range(rounds):
        world.change()
        world.world.step()
        for name in names:
            world.check(name)
    for name in names:
        world.check_past(name)


__all__ = ["TIME"]
