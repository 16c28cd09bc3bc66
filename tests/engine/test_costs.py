"""What is chosen, and told, from what runs took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, RecordedRun, RunKind
from dbt_incremental_dd.relation import lazy_session
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory
from dbt_incremental_dd.runtime import costs as choice
from dbt_incremental_dd.runtime.costs import Costs


@pytest.fixture(autouse=True)
def quick_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds outside of the suite."""
    monkeypatch.setattr(choice, "QUICK_SECONDS", 0.5)


def recorded(*runs: tuple[RunKind, int, int, float]) -> Costs:
    """Runs as a manifest has them, of a model whose query cannot be run as one."""
    return Costs(tuple(RecordedRun(*run) for run in runs))


def small(*runs: tuple[RunKind, float]) -> Costs:
    """The same of 100 changed updates each, among 50,000, of a model whose query can."""
    return replace(recorded(*((kind, 100, 50_000, seconds) for kind, seconds in runs)), can_recompute=True)


BUILT: tuple[RunKind, int, int, float] = ("build", 1_000_000, 1_000_000, 10.0)


def test_half_of_everything_is_built_anew_where_nothing_is_known() -> None:
    assert Costs(()).choose(600_000, 1_000_000) == "rebuild"
    assert Costs(()).choose(400_000, 1_000_000) == "delta"
    assert Costs(()).choose(9_000, 9_000) == "delta"


def test_until_deltas_tell_an_update_in_bulk_costs_two_times_one_of_a_build() -> None:
    """So many are joined; fewer are looked up one by one."""
    costs = recorded(("build", 60_000_000, 60_000_000, 600.0))
    assert costs.choose(20_000_000, 80_000_000) == "delta"
    assert costs.choose(39_000_000, 80_000_000) == "delta"
    assert costs.choose(41_000_000, 80_000_000) == "rebuild"


def test_until_deltas_tell_an_update_costs_eight_times_one_of_a_build() -> None:
    costs = recorded(BUILT)
    assert costs.delta(100_000) == 0.5 + 8.0
    assert costs.choose(100_000, 1_000_000) == "delta"
    assert costs.choose(200_000, 1_000_000) == "rebuild"


def test_recorded_deltas_decide() -> None:
    slow = recorded(BUILT, ("delta", 1, 1_000_000, 1.0), ("delta", 50_000, 1_050_000, 11.0))
    fast = recorded(BUILT, ("delta", 1, 1_000_000, 1.0), ("delta", 50_000, 1_050_000, 1.5))
    assert slow.choose(100_000, 1_000_000) == "rebuild"
    assert fast.choose(500_000, 1_500_000) == "delta"


def test_a_slow_run_of_one_row_tells_nothing_of_many_rows() -> None:
    costs = recorded(BUILT, ("delta", 1, 1_000_000, 0.4), ("delta", 1, 1_000_000, 9.0))
    assert costs.choose(50_000, 1_000_000) == "delta"


def test_a_small_delta_that_takes_longer_than_a_build_is_not_kept() -> None:
    costs = recorded(("build", 50_000, 50_000, 19.0), ("delta", 100, 50_000, 41.0), ("delta", 100, 50_000, 26.0))
    assert costs.choose(100, 50_000) == "rebuild"
    assert replace(costs, can_recompute=True).choose(100, 50_000) == "recompute"


def test_a_quick_build_is_repeated_before_one_query_is_tried() -> None:
    """The build may have run on the driver, without a session; what Spark takes to plan the query is not in it."""
    assert small(("build", 1.7), ("delta", 2.0)).choose(100, 50_000) == "delta"
    assert small(("build", 1.7), ("delta", 2.0), ("delta", 2.0)).choose(100, 50_000) == "rebuild"
    assert small(("build", 1.7), ("build", 0.2), ("delta", 2.0), ("delta", 2.0)).choose(100, 50_000) == "rebuild"
    assert small(("build", 1.7), ("build", 1.7), ("delta", 2.0), ("delta", 2.0)).choose(100, 50_000) == "recompute"


def test_one_slow_delta_tells_little_and_a_quick_one_is_kept() -> None:
    assert small(("build", 8.0), ("delta", 4.0)).choose(100, 50_000) == "delta"
    assert small(("build", 8.0), ("delta", 9.0)).choose(100, 50_000) == "recompute"
    assert small(("build", 8.0), ("delta", 4.0), ("delta", 3.0)).choose(100, 50_000) == "recompute"
    assert small(("build", 8.0), ("delta", 9.0), ("delta", 1.0)).choose(100, 50_000) == "delta"
    assert small(("build", 0.4), ("delta", 0.4), ("delta", 0.4)).choose(100, 50_000) == "delta"


def test_a_slow_first_build_does_not_forbid_to_try_and_what_was_tried_decides() -> None:
    slow = (("build", 8.0), ("delta", 3.0), ("delta", 3.0))
    assert small(*slow).choose(100, 50_000) == "recompute"
    assert small(*slow, ("recompute", 2.0)).choose(100, 50_000) == "recompute"
    assert small(*slow, ("recompute", 4.0)).choose(100, 50_000) == "delta"
    assert small(*slow).choose(100, 2_000_000) == "delta"
    assert recorded(("build", 9, 9, 8.0), ("delta", 9, 9, 5.0), ("delta", 9, 9, 5.0)).choose(9, 9) == "rebuild"
    twice = recorded(*(("build", 9, 9, 8.0),) * 2, *(("delta", 9, 9, 5.0),) * 2)
    assert twice.choose(9, 9) == "delta"


def test_a_slow_delta_of_few_updates_tells_of_many_too() -> None:
    costs = replace(recorded(("build", 100, 50_000, 3.0), ("delta", 2, 50_000, 10.0)), can_recompute=True)
    assert costs.choose(8_000, 50_000) == "recompute"
    quick = replace(recorded(("build", 100, 50_000, 3.0), ("delta", 2, 50_000, 0.6)), can_recompute=True)
    assert quick.choose(8_000, 50_000) == "delta"


def test_ties_are_run_as_one_only_where_few_rows_can_change_without_a_reason() -> None:
    runs = (("build", 100, 50_000, 8.0), ("delta", 100, 50_000, 9.0))
    costs = replace(recorded(*runs), can_recompute=True, has_ties=True)  # type: ignore[arg-type]
    assert costs.choose(100, 50_000) == "recompute"
    assert costs.choose(100, 200_000) != "recompute"
    behind = replace(costs, behind=True)
    assert behind.choose(100, 50_000) == "recompute"
    assert behind.choose(100, 200_000) == "rebuild"


def test_a_large_change_is_a_query_over_everything_where_that_is_quicker() -> None:
    """Where most rows change in every run, ties or not."""
    costs = replace(recorded(("build", 130_000, 130_000, 16.0)), can_recompute=True)
    assert costs.choose(260_000, 130_000) == "recompute"
    assert replace(costs, has_ties=True).choose(260_000, 130_000) == "recompute"
    assert replace(costs, has_ties=True).choose(40_000, 130_000) == "rebuild"
    assert replace(costs, has_ties=True, replaces=True).choose(40_000, 130_000) == "recompute"
    assert replace(costs, can_recompute=False).choose(260_000, 130_000) == "rebuild"
    tried = replace(costs, runs=(*costs.runs, RecordedRun("recompute", 260_000, 130_000, 14.0)))
    assert tried.choose(260_000, 130_000) == "rebuild"
    quicker = replace(costs, runs=(*costs.runs, RecordedRun("recompute", 260_000, 130_000, 9.0)))
    assert quicker.choose(260_000, 130_000) == "recompute"
    assert quicker.choose(260_000, 130_000, opening=10.0) == "rebuild"
    short = replace(recorded(("build", 130_000, 130_000, 0.9)), can_recompute=True)
    assert short.choose(260_000, 130_000) == "rebuild"


def test_states_that_are_behind_are_built_again_when_deltas_are_far_quicker() -> None:
    costs = replace(small(("build", 8.0), ("delta", 3.0), ("delta", 3.0), ("recompute", 2.0)), behind=True)
    assert costs.choose(100, 50_000) == "recompute"
    assert costs.choose(40_000, 90_000) == "recompute"
    assert costs.choose(100, 200_000) == "recompute"
    assert costs.choose(100, 600_000) == "rebuild"


def test_a_build_grows_with_its_inputs() -> None:
    assert recorded(BUILT).build(3_000_000) == 30.0
    assert recorded(BUILT).build(10) == 10.0


def test_the_last_builds_and_recomputes_and_the_latest_deltas_are_kept() -> None:
    costs = recorded(BUILT)
    for seconds in range(20):
        costs = Costs(costs.with_run("delta", 5, 1_000, float(seconds)))
        costs = Costs(costs.with_run("recompute", 5, 1_000, float(seconds)))
    costs = Costs(costs.with_run("rebuild", 7, 2_000, 3.0))
    assert costs.build(2_000) == 3.0
    assert costs.recompute(1_000) == 18.0
    assert [run.seconds for run in costs.runs] == [10.0, 3.0, *map(float, range(8, 20)), 17.0, 18.0, 19.0]


def test_former_versions_recorded_whether_a_run_was_a_build() -> None:
    manifest = Manifest.from_json({"kind": "model", "runs": [[True, 9, 9, 2.0], [False, 9, 9, 1.0]]})
    assert isinstance(manifest, ModelManifest)
    assert [run.kind for run in Costs.of(manifest).runs] == ["build", "delta"]


def test_all_estimates_are_told() -> None:
    assert Costs(()).told(1, 2) == "Cost: no run is recorded yet"
    told = recorded(BUILT, ("delta", 100, 1_000_000, 0.5)).told(100, 1_000_000)
    assert "100 changed updates by a delta about 0.5 s (1 recorded)" in told
    assert told.endswith("by a build of 1,000,000 about 10.0 s; next: a delta")
    told = small(("build", 8.0), ("delta", 9.0)).told(100, 50_000)
    assert told.endswith("by a build of 50,000 about 8.0 s, as one query not tried; next: one query")
    told = replace(small(("build", 8.0), ("delta", 9.0), ("recompute", 1.0)), behind=True).told(100, 50_000)
    assert "(states are behind: a delta needs a build first)" in told
    assert told.endswith("as one query about 1.0 s; next: one query")


def test_a_history_of_a_few_thousand_updates_makes_no_query_slower() -> None:
    """Rows that change in every run, over a few rounds: five times the updates, and a query that takes as long."""
    costs = Costs(
        (RecordedRun("build", 4_000, 4_000, 2.5), RecordedRun("delta", 8_500, 12_500, 6.0)), can_recompute=True
    )
    assert costs.choose(8_400, 21_000) == "recompute"
    assert costs.build(21_000) == 2.5
    assert costs.build(200_000) == 5.0


def test_a_session_that_has_just_been_opened_is_taken_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory(SessionMemory):
        opening = 9.0  # type: ignore[assignment]

    at = 0.0
    monkeypatch.setattr(lazy_session.time, "monotonic", lambda: at)
    session = LazySession(lambda: object(), Memory())  # type: ignore[arg-type, return-value]
    assert session.opening == 9.0
    assert session.spark
    assert session.opening == 9.0
    at = 30.0
    assert session.opening == 4.5
    at = 100.0
    assert session.opening == 0.0
    assert LazySession.of(object()).opening == 0.0  # type: ignore[arg-type]


def test_deltas_tell_of_changes_of_the_same_inputs() -> None:
    """A few new prices change every portfolio, a few new trades change a few."""
    manifest = ModelManifest(runs=(RecordedRun("build", 100_000, 100_000, 2.0),))
    for name, seconds in (("trades", 0.3), ("prices", 8.0), ("trades", 0.3), ("trades", 0.3)):
        manifest = replace(manifest, runs=Costs.of(manifest, [name]).with_run("delta", 50, 100_000, seconds))
    assert Costs.of(manifest, ["trades"]).choose(50, 100_000) == "delta"
    assert Costs.of(manifest, ["prices"]).choose(50, 100_000) == "rebuild"
    assert Costs.of(manifest, ["trades", "prices"]).choose(50, 100_000) == "delta"
    stored = Manifest.from_json(manifest.to_json())
    assert isinstance(stored, ModelManifest) and stored.runs == manifest.runs
