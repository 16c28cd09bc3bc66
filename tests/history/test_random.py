"""Random rounds of inserts, updates, deletes, late and corrected rows, NULLs and duplicates: each kind of history is, in
every round, the one that is kept by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.runtime.verify import verify_model
from tests.engines import IN_SPARK
from tests.history.reference import FAR, ByKey, OfRows, Row, Version, moment
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SNAPSHOT = (("id", "scd_id"), ("updated", "updated_at"), ("from", "begins"), ("to", "ends"))
_MARKED = (*_SNAPSHOT, ("deleted", "is_deleted"))
_ALL = "SELECT * FROM {t}"
_BY_ID = {"key": lambda row: row[0]}
_BY_TIME = {**_BY_ID, "time": lambda row: row[3]}
_KINDS: dict[str, tuple[str, History, Callable[[], Any]]] = {
    "of_rows": ("SELECT name, amount FROM {t}", History(), OfRows),
    "by_key": (_ALL, History(key=("ID",)), lambda: ByKey(**_BY_ID)),
    "by_time": (_ALL, History(key=("id",), time="changed"), lambda: ByKey(**_BY_TIME)),
    "of_groups": (
        "SELECT name, count(*) AS n, sum(amount) AS total, max(amount) AS most FROM {t} GROUP BY name",
        History(key=("name",)),
        lambda: ByKey(key=lambda row: row[0]),
    ),
    "of_winners": (
        "SELECT id, name, amount, changed FROM {t} QUALIFY row_number() OVER (PARTITION BY name ORDER BY id) <= 2",
        History(key=("id",)),
        lambda: ByKey(**_BY_ID),
    ),
    "checked": (
        _ALL,
        History(key=("id",), compared=("name",), deletes="keep", columns=_SNAPSHOT),
        lambda: ByKey(**_BY_ID, compared=(1,), deletes="keep"),
    ),
    "timed": (
        _ALL,
        History(key=("id",), time="changed", mends=False, open_end="to_date('9999-12-31')", columns=_SNAPSHOT),
        lambda: ByKey(**_BY_TIME, mends=False),
    ),
    "marked": (
        _ALL,
        History(key=("id",), time="changed", mends=False, deletes="record", columns=_MARKED),
        lambda: ByKey(**_BY_TIME, mends=False, deletes="record"),
    ),
    "checked_and_marked": (
        _ALL,
        History(key=("id",), deletes="record", columns=_MARKED),
        lambda: ByKey(**_BY_ID, deletes="record"),
    ),
}
_NAMES = ("ann", "bob", None, "eve")


class Rounds:
    """A table whose rows change at random, histories over it, and those that are kept by hand."""

    def __init__(
        self, spark: SparkSession, folder: Path, seed: int, kinds: tuple[str, ...], thresholds: Thresholds
    ) -> None:
        self.random = random.Random(seed)
        table = Table("id INT, name STRING, amount DECIMAL(8,2), changed TIMESTAMP")
        self.world = World(spark, folder, {"t": table}, thresholds)
        self.references = {}
        for kind in kinds:
            sql, history, make = _KINDS[kind]
            self.world.model(kind, sql, history)
            self.references[kind] = make()

    def change(self) -> None:
        """Some rows come, some become others, some go; some come back."""
        rows = {row[0]: row for row in self.world.tables["t"].rows}
        for id in self.random.sample(range(12), self.random.randint(0, 5)):
            old = rows.get(id)
            if old is not None:
                self.world.delete("t", [old])
            if old is None or self.random.random() < 0.7:
                self.world.insert("t", [self._row(id, old)])

    def _row(self, id: int, old: Row | None) -> Row:
        name = self.random.choice(_NAMES)
        amount = self.random.choice([None, Decimal("1.00"), Decimal("2.50")])
        if old is not None and self.random.random() < 0.3:
            return (id, name, amount, old[3])  # corrected
        return (
            id,
            name,
            amount,
            moment(self.world.time + self.random.randint(-8, 8)).astimezone().replace(tzinfo=None),
        )

    def check(self) -> None:
        """Every history against its reference, and against itself."""
        at = moment(self.world.time)
        for kind, reference in self.references.items():
            is_whole = self.world.models[kind] == _ALL
            rows = self.world.tables["t"].rows if is_whole else self.world.batch(kind).collect()
            reference.run(map(_plain, rows), at)
            history = self.world.histories[kind]
            assert history is not None
            stored = Collection(self.world.storage, f"{self.world.schema}.{kind}").as_of(self.world.time).to_pylist()
            found = Counter(_found(history, row) for row in stored for _ in range(row.pop(DIFF)))
            assert found == Counter(_expected(version) for version in reference.versions), (kind, self.world.time)
            if self.world.time % 10 == 0:
                outcome = verify_model(self.world.spark, self.world.storage, f"{self.world.schema}.{kind}")
                assert outcome.exact, (kind, outcome)


def _plain(row: Any) -> Row:
    return tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row)


def _expected(version: Version) -> Row:
    return (version.row, version.begin, version.end, version.is_mark)


def _found(history: History, row: dict[str, Any]) -> Row:
    names = history.names
    added = set(names.values())
    begin, end = (row[names[role]] for role in ("from", "to"))
    end = None if end is None or end.year == FAR.year else end.astimezone(UTC)
    if "current" in names:
        assert row[names["current"]] == (end is None)
    if "id" in names:
        assert len(row[names["id"]]) == 32
    own = _plain(value for name, value in row.items() if name not in added)
    return (own, begin.astimezone(UTC), end, row.get(names.get("deleted", "")) == "True")


def test_each_round_is_that_of_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    rounds = Rounds(spark, tmp_path, 1, tuple(_KINDS), Thresholds())
    for _ in range(50):
        rounds.change()
        rounds.world.step(full_refresh=rounds.random.random() < 0.05)
        rounds.check()


@pytest.mark.parametrize("kind", ["of_rows", "by_time", "marked"])
def test_in_spark_as_on_the_driver(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    rounds = Rounds(spark, tmp_path, 3, (kind,), IN_SPARK)
    for _ in range(6):
        rounds.change()
        rounds.world.step()
        rounds.check()
