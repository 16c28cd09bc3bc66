"""New versions of a model over inputs that stay where they are: exact, later than all that was final, and told as
differences."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import FrontierError, UnsupportedSQL
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.trace.position import position
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A = "SELECT k, v FROM {t} WHERE v > 0"
B = "SELECT k, sum(v) AS s, max(v) AS hi FROM {a} GROUP BY k"
C = "SELECT a.k, a.v, b.s, b.hi, x.w FROM {a} a JOIN {b} b ON b.k = a.k LEFT JOIN {x} x ON x.k = a.k"
EDITED = "SELECT k, sum(v) + 1 AS s, max(v) AS hi FROM {a} WHERE v > 1 GROUP BY k"
AGAIN = "SELECT k, sum(v) * 2 AS s, min(v) AS hi FROM {a} GROUP BY k"
OTHER_COLUMNS = "SELECT k, sum(v) AS s, max(v) AS hi, count(*) AS n FROM {a} GROUP BY k"
TIMED = "SELECT k, sum(v) AS s, max(v) AS hi FROM {a} WHERE timestamp_millis(1000 + v) <= dd_now() GROUP BY k"


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    """A chain of three models, of which the last one reads both others and a table."""
    world = World(spark, tmp_path, {"t": Table("k INT, v INT"), "x": Table("k INT, w INT")})
    world.insert("t", [(i % 3, i) for i in range(10)])
    world.insert("x", [(0, 10), (1, 11)])
    for name, sql in {"a": A, "b": B, "c": C}.items():
        world.model(name, sql)
    return world


class Reader:
    """Follows a collection by its changes alone, and remembers what it showed at each time."""

    def __init__(self, world: World, name: str) -> None:
        self._collection = Database(world.storage.root)[f"{world.schema}.{name}"]
        self._at = -1
        self._rows: Counter[str] = Counter()
        self._shown: dict[int, Counter[str]] = {}

    def check(self) -> None:
        """What was told adds up to what is there, and every time shows what it did."""
        frontiers = self._collection.frontiers
        assert frontiers.last >= self._at, "what was final is not taken back"
        if frontiers.since > self._at:  # other columns: a new history
            self._shown.clear()
            self._rows = _counted(self._collection.as_of(frontiers.since))
            self._at = frontiers.since
        self._rows.update(_counted(self._collection.changes(after=self._at)))
        self._at = frontiers.last
        self._shown[self._at] = self._live()
        for t, rows in self._shown.items():
            assert _counted(self._collection.as_of(t)) == rows, t

    def _live(self) -> Counter[str]:
        return Counter({row: n for row, n in self._rows.items() if n})


def _counted(table: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in table.to_pylist():
        row.pop("dd_time", None)
        n = row.pop("dd_diff")
        counts[str(row)] += n
    return counts


def test_an_edited_model_is_run_alone(world: World) -> None:
    world.step()
    readers = [Reader(world, name) for name in "abc"]
    before = world.time
    for sql in (EDITED, AGAIN):
        world.model("b", sql)
        outcome = world.run_only("b")["b"]
        assert outcome.strategy == "rebuild" and outcome.held_back_by.endswith(".a")
        world.check("b")
        _check(world, readers)
    assert world.storage.collection(f"{world.schema}.b").log().frontiers.last == before + 2  # type: ignore[union-attr]
    assert world.run_only("b")["b"].strategy == "skip"
    outcome = world.run_only("c")["c"]
    assert outcome.strategy == "delta" and outcome.rows_added == outcome.rows_removed > 0
    world.check()
    _check(world, readers)
    assert world.run_only("c")["c"].strategy == "skip"
    assert {o.strategy for o in world.step().values()} == {"skip"}, "the next times, which are taken, are passed"
    world.insert("t", [(1, 50), (7, 1)])
    assert {o.strategy for o in world.step().values()} == {"delta"}
    world.check()
    _check(world, readers)


def test_a_full_refresh_and_other_columns(world: World) -> None:
    world.step()
    readers = [Reader(world, name) for name in "abc"]
    outcome = world.run_only("b", full_refresh=True)["b"]
    assert (outcome.strategy, outcome.rows_added, outcome.rows_removed) == ("rebuild", 0, 0)
    assert world.run_only("c")["c"].strategy == "skip", "there is no difference"
    world.model("b", OTHER_COLUMNS)
    world.run_only("b")
    _check(world, readers)
    assert world.run_only("c")["c"].strategy == "rebuild", "an input's columns"
    world.check()
    _check(world, readers)
    world.delete("t", [(1, 1)])
    assert {o.strategy for o in world.step().values()} == {"delta"}
    world.check()
    _check(world, readers)


def test_a_new_input_whose_history_begins_later(world: World) -> None:
    """Another model is at an earlier time than the new input's first."""
    world.model("c", "SELECT k, v FROM {a}")
    world.step()
    world.tables["late"] = Table("k INT, w INT")
    world.schemas["late"], world._pending["late"] = world.schemas["x"], []
    world.insert("late", [(0, 5)])
    world._next_run()  # of tables only
    world.model("late_model", "SELECT k, w FROM {late}")
    world.run_only("late_model")
    world.model("c", "SELECT a.k, a.v, l.w FROM {a} a JOIN {late_model} l ON l.k = a.k")
    world.run_only("c")
    assert _verified(world, "c")
    assert len(world.found("c").collect()) == 3
    world.step()
    assert _verified(world, "c")


def test_an_added_input_that_is_behind(world: World) -> None:
    """It has never been read by the model, so it has lost nothing: the model goes back to where both are final."""
    models = {"slow": "SELECT k, w FROM {x}", **world.models}
    world.models = models
    world.step()
    world._next_run()
    world.insert("t", [(1, 1)])
    world._next_run()
    world.run_only("a", "b", "c")
    world.model("b", "SELECT a.k, a.v AS s, s.w AS hi FROM {a} a JOIN {slow} s ON s.k = a.k")
    outcome = world.run_only("b")["b"]
    assert outcome.held_back_by.endswith(".slow") and _verified(world, "b")
    world.step()
    world.check()


def test_errors_of_the_query_come_first(world: World) -> None:
    world.step()
    for sql, said in (("SELECT nope FROM {a}", "`nope` cannot be resolved"), ("SELECT k FROM {a} WHERE (", "parsed")):
        world.model("b", sql)
        with pytest.raises(UnsupportedSQL, match=said):
            world.run_only("b")
    world.model("b", EDITED)
    world.run_only("b", "c")
    world.check()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_any_runs_in_any_order(world: World, spark: SparkSession, seed: int) -> None:
    """Edits, refreshes, selections, compactions and new rows, at random: each model is exact for what it has read, and
    readers by changes agree with readers as of a time."""
    rng = random.Random(seed)
    world.step()
    readers = [Reader(world, name) for name in "abc"]
    for _ in range(10):
        if rng.random() < 0.4:
            world.insert("t", [(rng.randint(0, 3), rng.randint(0, 30)) for _ in range(2)])
        if rng.random() < 0.5:
            world.model("b", rng.choice([B, EDITED, AGAIN, OTHER_COLUMNS, TIMED]))
        if rng.random() < 0.2:
            world.model("c", rng.choice([C, C.replace("LEFT JOIN", "JOIN")]))
        if rng.random() < 0.1:
            list(compact(LazySession.of(spark), world.storage, None, 1_000_000))
        chosen = rng.choice(["b", "c", "bc", "bc", "ab", "abc"])
        if rng.random() < 0.3:
            world._next_run()
        world.run_only(*chosen, full_refresh=rng.random() < 0.2)
        assert all(_verified(world, name) for name in "abc")
        _check(world, readers)
    world.step()
    world.check()
    assert all(_verified(world, name) for name in "abc")


def _check(world: World, readers: list[Reader]) -> None:
    for reader in readers:
        reader.check()
    for name in "abc":
        changes = world.spark.table(f"{world.schema}.{name}__changes")
        assert changes.selectExpr("sum(dd_diff)").head()[0] == world.found(name).count()  # type: ignore[index]


def _verified(world: World, name: str) -> bool:
    """Whether the model is exact for what it has read. What it has read of a model that was built anew with other
    columns since then cannot be read again, which is said."""
    try:
        return verify_model(world.spark, world.storage, f"{world.schema}.{name}").exact
    except FrontierError as error:
        place = world.storage.collection(f"{world.schema}.{name}")
        log = place.log()
        assert log is not None
        read = position(log, place.read_manifest(log.manifest)).inputs
        gone = [other for other, t in read.items() if t < _since(world, other)]
        return bool(gone) and all(other in str(error) for other in gone)


def _since(world: World, name: str) -> int:
    log = world.storage.collection(name).log()
    assert log is not None
    return log.frontiers.since
