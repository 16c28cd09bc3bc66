"""Queries that run as one in place of a delta: exact in any order of deltas, builds and recomputes, and safe to end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot

from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.state import OutputState
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Aggregate, Get, Order
from dbt_incremental_dd.runtime import work
from dbt_incremental_dd.runtime.costs import Costs
from dbt_incremental_dd.runtime.recompute import can_recompute, has_ties
from dbt_incremental_dd.runtime.request import Strategy
from dbt_incremental_dd.trace.columns import require
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "day DATE, kind STRING, amount DOUBLE, n INT"
AMOUNTS = [None, 0.0, -0.0, 0.25, -1.5, 1e6, float("nan"), float("inf")]
BY_DAY = """
  with a_days as (select day, sum(amount) as amount, count(*) as rows from {a} group by day),
  b_days as (select day, sum(cast(n as double)) as n, max(amount) as top from {b} group by day)
  select coalesce(a_days.day, b_days.day) as day, a_days.amount, rows, b_days.n, top
  from a_days full outer join b_days on a_days.day = b_days.day
"""
LATER = "select day, amount, n from {by_day} where amount > 0 or n is null"


class Forced:
    """Chooses in place of what runs have cost."""

    def __init__(self) -> None:
        self.random = random.Random(154)
        self.only: Strategy | None = None

    def choose(self, costs: Costs, changed: int, total: int) -> Strategy:
        if self.only:
            return "rebuild" if costs.behind and self.only == "delta" else self.only
        left = ["rebuild", "rebuild", "recompute"] if costs.behind else ["delta", "delta", "rebuild", "recompute"]
        return self.random.choice(
            [one for one in left if (costs.can_recompute and not costs.has_ties) or one != "recompute"]
        )


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Forced:
    """One for all models of a test."""
    chosen = Forced()
    monkeypatch.setattr(Costs, "choose", lambda costs, changed, total, _=0.0: chosen.choose(costs, changed, total))
    return chosen


@pytest.fixture
def stopped() -> Iterator[list[str]]:
    """Names of points at which a run fails."""
    names: list[str] = []

    def reached(name: str) -> None:
        if name in names:
            raise KeyboardInterrupt(name)

    failpoints._watcher = reached
    yield names
    failpoints._watcher = None


def some_rows(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Rows of a few days."""
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(9)]
    return [(rng.choice(days), rng.choice("xyz"), rng.choice(AMOUNTS), rng.randrange(5)) for _ in range(count)]


def test_any_order_of_deltas_builds_and_recomputes_is_exact(
    spark: SparkSession, tmp_path: Path, forced: Forced, stopped: list[str]
) -> None:
    rng = random.Random(1)
    world = World(spark, tmp_path, {name: Table(DDL, some_rows(rng, 30)) for name in ("a", "b")})
    world.model("by_day", BY_DAY)
    world.model("later", LATER)
    world.step()
    seen: Counter[tuple[str, str]] = Counter()
    for number in range(3):
        for name in ("a", "b") if number % 3 else ("b",):
            world.delete(name, rng.sample(world.tables[name].rows, 2))
            world.insert(name, some_rows(rng, 2))
        seen.update((name, outcome.strategy) for name, outcome in world.step().items())
        world.check()
    assert {name for name, strategy in seen if strategy == "recompute"} == {"by_day", "later"}
    assert {strategy for name, strategy in seen if name == "by_day"} == {"delta", "rebuild", "recompute"}
    _can_be_ended_anywhere(world, forced, stopped)
    _changes_only_what_changed(world, forced)


def _changes_only_what_changed(world: World, forced: Forced) -> None:
    """A recompute stores the difference, and says so; a row with NaN or -0.0 that stays is left alone."""
    forced.only = "recompute"
    world.insert("a", [(date(2024, 3, 1), "x", 1.0, 1)])
    outcome = world.step()["by_day"]
    assert (outcome.rows_added, outcome.rows_removed) == (1, 0)
    assert "recomputed: quicker than a delta" in outcome.message
    manifest = _stored(world, "by_day")
    assert manifest.behind and not manifest.inner
    assert "next: " in Costs.of(manifest).told(1, 10) and "states are behind" in Costs.of(manifest).told(1, 10)


def _can_be_ended_anywhere(world: World, forced: Forced, stopped: list[str]) -> None:
    """Before the commit nothing has happened, and a delta still finds its states; after it, they are behind."""
    del world.models["later"]
    for point, behind in (("model: written", False), ("model: committed", True)):
        forced.only = "recompute"
        world.insert("a", [(date(2024, 3, 3), "y", 2.5, 1)])
        stopped.append(point)
        with pytest.raises(KeyboardInterrupt):
            world.step()
        stopped.clear()
        assert _stored(world, "by_day").behind is behind
        forced.only = "delta"
        world.insert("a", [(date(2024, 3, 4), "y", 2.5, 1)])
        assert world.step()["by_day"].strategy == ("rebuild" if behind else "delta")
        world.check()


def test_which_queries_leave_ties_open_and_which_may_be_run_as_one() -> None:
    table = Get("t", (("c1", "x"), ("c2", "y")))
    old, sql = OutputState(()), Expr.of(sqlglot.parse_one("row_number() OVER (PARTITION BY c1 ORDER BY c2)"))

    def groups(function: str) -> RecomputeGroups:
        aggregate = Aggregate("c3", Expr(f"{function}(c2)"), function, (Expr("c2"),))
        return RecomputeGroups(table, ("c1",), (aggregate,), False, "", (), old)

    whole = {"c3": Expr("sum(c2) OVER (PARTITION BY c1)"), "c4": Expr("rank() OVER (PARTITION BY c1 ORDER BY c2)")}
    clear = [
        table,
        groups("sum"),
        groups("count"),
        WindowGroups(table, ("c1",), tuple(whole.items()), old, None, None),
    ]
    tied = [
        groups("collect_list"),
        TopGroups(table, ("c1",), (Order(Expr("c2"), False, True),), (), 1, 0, old),
        WindowGroups(table, ("c1",), (("c3", sql),), old, None, None),
    ]
    as_text = Recompute("select 1", (table,), (("x", "y"),), ("c1",), "", False, (), old)
    assert not any(has_ties(DifferentialPlan(node, node.columns)) for node in (*clear, as_text))
    assert all(has_ties(DifferentialPlan(node, node.columns)) for node in tied)
    assert all(can_recompute(DifferentialPlan(node, node.columns)) for node in (*clear, *tied))
    assert not can_recompute(DifferentialPlan(as_text, as_text.columns))


def test_ties_that_are_run_as_one_are_one_of_the_answers(spark: SparkSession, tmp_path: Path, forced: Forced) -> None:
    """Deltas, builds and recomputes of them in turn: what the query determines is exact."""
    world = World(spark, tmp_path, {"t": Table("k INT, v INT, s STRING")})
    numbered = "SELECT k, v, s, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM {t}"
    world.model("first", f"SELECT k, v, s FROM ({numbered}) WHERE n = 1")
    world.model("sums", "SELECT k, sum(v) AS v, count(*) AS n FROM {first} GROUP BY k")
    rng = random.Random(5)
    for how in ("rebuild", "recompute", "recompute", "delta", "delta", "recompute", "rebuild"):
        world.insert("t", [(rng.randrange(4), rng.randrange(3), rng.choice("abc")) for _ in range(8)])
        world.delete("t", rng.sample(world.tables["t"].rows, min(3, len(world.tables["t"].rows))))
        forced.only = how  # type: ignore[assignment]
        world.step()
        world.check("sums")
        answer, found = world.batch("first"), world.found("first")
        for one, other in ((answer, found), (found, answer)):
            assert one.select("k", "v").exceptAll(other.select("k", "v")).isEmpty()
        assert found.exceptAll(spark.createDataFrame(world.tables["t"].rows, "k INT, v INT, s STRING")).isEmpty()


def test_a_query_that_spark_does_not_answer_is_built_by_its_plan_and_not_tried_again(
    spark: SparkSession, tmp_path: Path, forced: Forced, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, tmp_path, {"a": Table(DDL, some_rows(random.Random(2), 5))})
    world.model("m", "select kind, sum(n) as n from {a} group by kind")
    world.step()
    forced.only = "recompute"
    failing = lambda *_: _failing(spark)  # noqa: E731
    monkeypatch.setattr(work, "recomputed", failing)
    world.insert("a", some_rows(random.Random(3), 2))
    assert world.step()["m"].strategy == "rebuild"
    world.check()
    forced.only = None
    assert not Costs.of(_stored(world, "m")).can_recompute
    world.insert("a", some_rows(random.Random(4), 2))
    world.step()
    assert not Costs.of(_stored(world, "m")).can_recompute


def test_by_deltas_whatever_would_be_quicker(spark: SparkSession, tmp_path: Path, forced: Forced) -> None:
    """``strategy: delta``; where the states are behind, a build comes first."""
    world = World(spark, tmp_path, {name: Table(DDL, some_rows(random.Random(6), 20)) for name in ("a", "b")})
    world.model("by_day", BY_DAY)
    world.step()
    rng = random.Random(7)
    for forced.only in ("rebuild", "recompute"):
        world.insert("a", some_rows(rng, 2))
        assert world.step(strategy="delta")["by_day"].strategy == "delta"
        world.check()
    world.insert("b", some_rows(rng, 2))
    assert world.step()["by_day"].strategy == "recompute"
    for strategy in ("rebuild", "delta"):
        world.insert("b", some_rows(rng, 2))
        assert world.step(strategy="delta")["by_day"].strategy == strategy
        world.check()


def _failing(spark: SparkSession) -> Any:
    spark.sql("select raise_error('no')").collect()


def _stored(world: World, name: str) -> ModelManifest:
    log, _ = require(world.storage, f"{world.schema}.{name}")
    manifest = world.storage.collection(log.name).read_manifest(log.manifest)
    assert isinstance(manifest, ModelManifest)
    return manifest
