"""Open tables of models of several kinds, computed on the driver and in Spark."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.open_table.registry import FORMATS
from tests.engines import IN_SPARK
from tests.open_table.readers import READERS, Rows, feed_by_delta_rs, plain
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "rows": "SELECT * FROM {t}",
    "sums": "SELECT name, count(*) AS n, sum(amount) AS total, avg(ratio) AS `avg(ratio)` FROM {t} GROUP BY name",
    "nested": "SELECT id % 5 AS id, named_struct('r', ratio, 'n', name) AS s, array(ratio, NULL) AS a FROM {t}",
    "mapped": "SELECT map(coalesce(name, '-'), ratio) AS m, id FROM {t}",
}
_RATIOS = (0.0, -0.0, float("nan"), None, 0.1)


class Models:
    """A table whose rows change at random, and models over it with open tables."""

    def __init__(
        self, spark: SparkSession, folder: Path, seed: int, thresholds: Thresholds, format: str, *names: str
    ) -> None:
        self.random, self.format = random.Random(seed), format
        ddl = "id INT, name STRING, amount DECIMAL(8,2), ratio DOUBLE, at TIMESTAMP"
        self.world = World(spark, folder, {"t": Table(ddl)}, thresholds)
        for name in names:
            self.world.model(name, MODELS[name], output=format)
        self.versions: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
        """Numbers of versions, and the times at which they were the latest."""

    def step(self) -> None:
        """Some rows come, some go, and every table is as its collection."""
        rows = self.world.tables["t"].rows
        self.world.delete("t", self.random.sample(rows, self.random.randint(0, len(rows) // 3)))
        self.world.insert("t", [self._row() for _ in range(self.random.randint(0, 12))])
        self.world.step()
        for name in self.versions:
            collection = self.collection(name)
            uri = collection.place.table_uri
            expected = self.contents(name, self.world.time)
            assert READERS[self.format](uri, collection.schema.names) == expected, (name, self.world.time)
            version = FORMATS[self.format].load(self.world.storage, uri)
            assert version is not None
            self.versions[name].append((version.number, self.world.time))

    def _row(self) -> tuple[Any, ...]:
        pick = self.random.choice
        times = [None, datetime(2024, 2, 29, 12, 0, 0, 123456), datetime(1969, 12, 31, 23, 59, 59)]
        amounts = [None, Decimal("1.00"), Decimal("-2.50")]
        return pick([None, *range(8)]), pick([None, "ann", "ü'\"`", ""]), pick(amounts), pick(_RATIOS), pick(times)

    def collection(self, name: str) -> Collection:
        return Collection(self.world.storage, f"{self.world.schema}.{name}")

    def contents(self, name: str, t: int) -> Rows:
        """The collection's rows as of a time."""
        found: Rows = Counter()
        for row in self.collection(name).as_of(t).to_pylist():
            diff = row.pop(DIFF)
            found[tuple(map(plain, row.values()))] += diff
        return found


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("thresholds", "steps"), [(Thresholds(), 8), pytest.param(IN_SPARK, 5, id="in Spark")])
def test_models(spark: SparkSession, tmp_path: Path, thresholds: Thresholds, steps: int, format: str) -> None:
    models = Models(spark, tmp_path, 2, thresholds, format, *MODELS)
    for _ in range(steps if format == "delta" else steps // 2):
        models.step()
    for name in MODELS if format == "delta" else ():
        collection = models.collection(name)
        feed = feed_by_delta_rs(collection.place.table_uri, collection.schema.names, 0)
        found: Rows = Counter()
        for rows in feed.values():
            found.update(rows)
        assert +found == models.contents(name, models.world.time), name
