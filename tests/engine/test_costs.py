"""What is chosen, and told, from what runs took."""

from __future__ import annotations

from dbt_incremental_dd.runtime.costs import Costs


def recorded(*runs: tuple[bool, int, int, float]) -> Costs:
    """Runs as a manifest has them."""
    return Costs.of({"runs": [list(run) for run in runs]})


BUILT = (True, 1_000_000, 1_000_000, 10.0)


def test_half_of_everything_is_built_anew_where_nothing_is_known() -> None:
    assert Costs.of({}).favours_build(600_000, 1_000_000)
    assert not Costs.of({}).favours_build(400_000, 1_000_000)
    assert not Costs.of({}).favours_build(9_000, 9_000)


def test_until_deltas_tell_an_update_costs_eight_times_one_of_a_build() -> None:
    costs = recorded(BUILT)
    assert costs.delta(100_000) == 0.5 + 8.0
    assert not costs.favours_build(100_000, 1_000_000)
    assert costs.favours_build(200_000, 1_000_000)


def test_recorded_deltas_decide() -> None:
    slow = recorded(BUILT, (False, 1, 1_000_000, 1.0), (False, 50_000, 1_050_000, 11.0))
    fast = recorded(BUILT, (False, 1, 1_000_000, 1.0), (False, 50_000, 1_050_000, 1.5))
    assert slow.favours_build(100_000, 1_000_000)
    assert not fast.favours_build(500_000, 1_500_000)


def test_a_slow_run_of_one_row_tells_nothing_of_many_rows() -> None:
    costs = recorded(BUILT, (False, 1, 1_000_000, 0.4), (False, 1, 1_000_000, 9.0))
    assert not costs.favours_build(50_000, 1_000_000)


def test_a_build_grows_with_its_inputs() -> None:
    assert recorded(BUILT).build(3_000_000) == 30.0
    assert recorded(BUILT).build(10) == 10.0


def test_the_last_build_and_the_latest_deltas_are_kept() -> None:
    costs = recorded(BUILT)
    for seconds in range(20):
        costs = Costs.of({"runs": costs.with_run("delta", 5, 1_000, float(seconds))})
    costs = Costs.of({"runs": costs.with_run("rebuild", 7, 2_000, 3.0)})
    assert costs.build(2_000) == 3.0
    assert [run.seconds for run in costs.runs] == [3.0, *map(float, range(8, 20))]


def test_both_estimates_are_told() -> None:
    assert Costs.of({}).told(1, 2) == "Cost: no run is recorded yet"
    told = recorded(BUILT, (False, 100, 1_000_000, 0.5)).told(100, 1_000_000)
    assert "100 changed updates by a delta about 0.5 s (1 recorded)" in told
    assert told.endswith("by a build of 1,000,000 about 10.0 s; next: a delta")
