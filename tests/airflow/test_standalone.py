"""The example DAGs in a real Airflow, on real flights, in the order of their days."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import FrontierError
from tests.airflow.running import Running
from tests.airflow.standalone import until

pytestmark = [pytest.mark.airflow, pytest.mark.in_order]

DAYS = ["2013-10-30", "2013-10-31", "2013-11-01", "2013-11-02", "2013-11-03"]
"""The first run's, and those after it: the last has not begun when the others are complete."""


def test_days_one_by_one_with_a_sensor_that_is_deferred(running: Running) -> None:
    airflow = running.airflow
    for dag in ("flights_moved", "flights"):
        airflow.unpause(dag)
    first = running.day(DAYS[0])
    until(lambda: airflow.state("flights", first, "flights_complete") == "deferred", 120, "the sensor is deferred")
    airflow.kill_part("triggerer")
    airflow.start_part("triggerer")
    for day in DAYS[:3]:
        running.feed("flights", "--until", day)
        airflow.wait("flights", running.day(day))
    told = airflow.xcom("flights", running.day(DAYS[2]), "models")
    assert (
        told["model.flights.daily"]["strategy"] in ("delta", "recompute")
        and told["model.flights.daily"]["rows_added"] >= 1
    )
    assert {c.frontiers.last for c in dbt_incremental_dd.open(str(running.state)).collections()} == {1383350400000}
    links = airflow.get(f"dags/flights/dagRuns/{first}/taskInstances/flights_complete/links")["extra_links"]
    assert links == {"Collections": f"{airflow.url}/differential/#feed.flights"}
    until(
        lambda: any(run["state"] == "success" for run in airflow.runs("flights_moved")), 120, "the watcher starts a run"
    )


def test_a_day_that_is_cleared_gives_the_same_rows(running: Running) -> None:
    airflow, before = running.airflow, {day: running.rows(day) for day in DAYS[1:4]}
    second = running.day(DAYS[1])
    body = {"dry_run": False, "dag_run_id": second, "only_failed": False, "reset_dag_runs": True}
    airflow.send("POST", "dags/flights/clearTaskInstances", body)
    until(lambda: airflow.get(f"dags/flights/dagRuns/{second}")["state"] != "success", 60, "it runs again")
    airflow.wait("flights", second)
    assert {day: running.rows(day) for day in DAYS[1:4]} == before


def test_a_backfill_equals_the_days(running: Running) -> None:
    airflow, daily = running.airflow, {day: running.rows(day) for day in DAYS[1:4]}
    running.state.rename(running.state.with_name("daily"))
    body = {"dag_id": "flights", "from_date": f"{DAYS[0]}T00:00:00Z", "to_date": f"{DAYS[2]}T00:00:00Z"}
    backfill = airflow.send("POST", "backfills", {**body, "reprocess_behavior": "completed", "max_active_runs": 1})
    until(lambda: airflow.get(f"backfills/{backfill['id']}")["completed_at"] is not None, 600, "the backfill is done")
    for day in DAYS[:3]:
        airflow.wait("flights", running.day(day))
    # Planes are one file that is replaced: of what it was on a day only that day's run knows.
    of_planes = running.reading("feed.planes")
    assert "flights.routes" in of_planes and "flights.daily" not in of_planes
    for day in DAYS[1:4]:
        found = running.rows(day)
        compared = daily[day].keys() if day == DAYS[3] else daily[day].keys() - of_planes
        wrong = [name for name in compared if found[name] != daily[day][name]]
        assert not wrong and found.keys() == daily[day].keys(), (day, wrong)


def test_what_comes_late_appears_in_the_next_interval(running: Running) -> None:
    airflow, folder = running.airflow, running.examples / "flights" / "data" / "flights"
    before = running.rows(DAYS[3])
    day = pq.read_table(folder / f"{DAYS[1]}.parquet").slice(0, 1).to_pylist()[0]
    late = {**day, "flight_id": 999_999, "dest": "LATE"}
    pq.write_table(pa.Table.from_pylist([late], pq.read_schema(folder / f"{DAYS[1]}.parquet")), folder / "late.parquet")
    airflow.unpause("flights_feed")
    airflow.wait("flights", running.day(DAYS[3]))
    until(
        lambda: [run["state"] for run in airflow.runs("flights_feed")] == ["success"] * 4, 120, "all days are written"
    )
    assert running.rows(DAYS[3]) == before
    assert any("'LATE'" in row for row in running.rows(DAYS[4])["flights.departures"])


def test_payments_on_assets(running: Running) -> None:
    airflow = running.airflow
    for dag in ("payments_report", "payments", "payments_feed"):
        airflow.unpause(dag)
    airflow.wait("payments_feed", airflow.trigger("payments_feed"))
    for dag in ("payments", "payments_report"):
        until(lambda dag=dag: bool(airflow.runs(dag)), 120, f"{dag} is started")  # type: ignore[misc]
        airflow.wait(dag, airflow.runs(dag)[0]["dag_run_id"])
    airflow.send("PATCH", "dags/payments_feed", {"is_paused": True})
    run = airflow.runs("payments_report")[0]["dag_run_id"]
    assert len(airflow.xcom("payments_report", run, "largest")) == 5
    events = airflow.get("assets/events", name_pattern="payments.captured_by_merchant")["asset_events"]
    told = next(e["extra"] for e in events if e["source_dag_id"] == "payments")
    assert told["model.payments.captured_by_merchant"]["rows_added"] > 0


def test_compaction_under_the_window(running: Running) -> None:
    airflow = running.airflow
    held = {day: running.rows(day) for day in DAYS[3:5]}
    before = running.bytes
    airflow.unpause("compaction_of_flights")
    until(lambda: bool(airflow.runs("compaction_of_flights")), 120, "it is started")
    airflow.wait("compaction_of_flights", airflow.runs("compaction_of_flights")[0]["dag_run_id"])
    airflow.send("PATCH", "dags/compaction_of_flights", {"is_paused": True})
    airflow.unpause("compaction")
    run = airflow.trigger("compaction")
    airflow.wait("compaction", run)
    lines = airflow.xcom("compaction", run, "compact_flights")
    assert any(line.startswith("flights.departures: since 2013-11-02 00:00:00") for line in lines), lines
    assert {day: running.rows(day) for day in DAYS[3:5]} == held, "the window answers as before"
    assert running.bytes < before, f"{before} bytes before, {running.bytes} after"
    with pytest.raises(FrontierError, match="since"):
        running.rows(DAYS[2])


WRONG = {
    "unknown_source": ("feed.flihgts is no source that has been taken in", "feed.flights"),
    "no_source": ("flights.daily is a model, not a source",),
    "unreachable": ("/proc/there cannot be written",),
    "no_zone": ("'2013-12-01' names no time zone",),
    "unknown_model": ("has found nothing", "['dayly']"),
    "failing": ("ended with 1", "never", "nothing_like_it"),
}


def test_what_cannot_work_is_told(running: Running) -> None:
    airflow = running.airflow
    before = running.rows(DAYS[4])
    for dag in ("wrong", "back"):
        airflow.unpause(dag)
    run = airflow.trigger("wrong")
    airflow.wait("wrong", run, "failed")
    for task, said in WRONG.items():
        assert airflow.state("wrong", run, task) == "failed"
        log = airflow.log("wrong", run, task)
        assert all(part in log for part in said), f"{task}:\n{log}"
    run = airflow.trigger("back")
    airflow.wait("back", run)
    assert airflow.xcom("back", run, "earlier")["complete_up_to"] == 1383436800000, "it never goes back"
    assert running.rows(DAYS[4]) == before
    broken = dbt_incremental_dd.open(str(running.examples / "broken" / "state" / "prod"))
    assert broken["payments.status_counts"].as_of().num_rows > 0
    assert "payments.never" not in [c.name for c in broken.collections()]


def test_an_assets_event_completes_a_source(running: Running) -> None:
    airflow = running.airflow
    airflow.unpause("after_files")
    run = airflow.trigger("after_files")
    until(lambda: airflow.state("after_files", run, "complete") == "up_for_reschedule", 120, "it waits without a slot")
    airflow.unpause("payments_feed")
    airflow.wait("payments_feed", airflow.trigger("payments_feed"))
    airflow.wait("after_files", run)
    assert airflow.xcom("after_files", run, "complete")["source"] == "s.t"
