"""What a model's run notes: its phases, and its plan's operators with their times and rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.profile import PHASES
from dbt_incremental_dd.runtime.request import Outcome
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.run_log.columns import OPERATORS, RUNS
from dbt_incremental_dd.runtime.run_log.log import RunLog
from dbt_incremental_dd.runtime.run_log.told import explain_last_run
from tests.engine.random_rows import A, B, row_a, row_b
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOINED = "SELECT a.k, count(*) AS n, max(b.w) AS w FROM {a} a JOIN {b} b ON a.k = b.k WHERE a.v > 0 GROUP BY a.k"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(spark, Path(tmp_path_factory.mktemp("noted")), {"a": Table(A), "b": Table(B)})
    rng = random.Random(3)
    world.insert("a", [row_a(rng) for _ in range(40)])
    world.insert("b", [row_b(rng) for _ in range(20)])
    world.model("m", JOINED)
    world.model("broken", "SELECT k, no_such_column FROM {a}")
    return world


def step(world: World) -> tuple[Outcome, Run]:
    run = world._next_run()
    run.run_log = RunLog(world.storage, run.invocation, 86_400_000)
    outcome = run.model(world._request("m"))
    with pytest.raises(DifferentialError):
        run.model(world._request("broken"))
    run.finish()
    return outcome, run


def test_phases_operators_and_a_failure(world: World) -> None:
    first, _ = step(world)
    assert first.strategy == "initial"
    rng = random.Random(4)
    added = [row_a(rng) for _ in range(3)]
    world.insert("a", added)
    outcome, run = step(world)
    assert outcome.strategy == "delta"
    assert set(outcome.profile.phases) <= set(PHASES)
    assert sum(outcome.profile.phases.values()) <= outcome.seconds
    assert sum(outcome.profile.phases.values()) > 0.8 * outcome.seconds, "little is in no phase"

    operators = outcome.profile.operators
    assert [one.number for one in operators] == list(range(len(operators)))
    assert operators[0].parent is None and all(
        one.parent < one.number for one in operators[1:] if one.parent is not None
    )
    own = sum(one.own_seconds for one in operators)
    assert 0 < own <= outcome.profile.phases["compute"]
    assert operators[0].seconds >= own * 0.99, "the output's operator asks all others"
    for one in operators:
        assert one.seconds >= one.own_seconds >= 0
    gets = {one.detail.split()[1]: one for one in operators if one.operator == "Get"}
    a, b = gets[f"{world.schema}.a"], gets[f"{world.schema}.b"]
    assert (a.rows_in, a.rows_out) == (3, 3) and (b.rows_in, b.rows_out) == (0, 0)
    assert sum(one.rows_read for one in operators) <= outcome.reads.rows
    assert outcome.reads.written >= outcome.updates > 0 and outcome.reads.bytes_written > 0

    database = Database(world.storage.root)
    runs = [row for row in database[RUNS].as_of().to_pylist() if row["invocation"] == run.invocation]
    by_model = {row["model"]: row for row in runs}
    noted, failed = by_model[f"{world.schema}.m"], by_model[f"{world.schema}.broken"]
    assert (noted["strategy"], noted["updates_in"], noted["updates_out"]) == ("delta", 3, outcome.updates)
    assert noted["seconds"] == pytest.approx(outcome.seconds)
    assert failed["strategy"] == "failed" and "no_such_column" in failed["error"]
    stored = [row for row in database[OPERATORS].as_of().to_pylist() if row["invocation"] == run.invocation]
    assert {row["number"]: row["own_seconds"] for row in stored} == {
        one.number: pytest.approx(one.own_seconds) for one in operators
    }
    text = explain_last_run(world.storage, f"{world.schema}.m")
    assert ": delta, " in text.splitlines()[0] and f"Get {world.schema}.a" in text


def test_an_unchanged_run_is_counted_only(world: World) -> None:
    del world.models["broken"]
    world.step()
    version = world.storage.collection(RUNS).log()
    run = world._next_run()
    run.run_log = RunLog(world.storage, run.invocation, 86_400_000)
    assert run.model(world._request("m")).strategy == "skip"
    run.finish()
    after = world.storage.collection(RUNS).log()
    assert version is not None and after is not None and after.version == version.version
