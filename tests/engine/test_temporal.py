"""Queries over ``dd_now()``: rows enter and leave as time passes, with new input and without."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 3, 28, 20, tzinfo=UTC)
HOUR = 3_600_000
DDL = "id INT, k INT, ts TIMESTAMP, until TIMESTAMP, day DATE, v BIGINT"

QUERIES = {
    "recent": "SELECT id, v FROM {ev} WHERE ts > dd_now() - INTERVAL 2 DAYS",
    "shifted": "SELECT id FROM {ev} WHERE ts + INTERVAL 36 HOURS >= dd_now() AND v > 1",
    "valid": "SELECT id, k FROM {ev} WHERE dd_now() BETWEEN ts AND until",
    "not valid": "SELECT id FROM {ev} WHERE NOT (ts <= dd_now() AND until > dd_now())",
    "today": "SELECT id FROM {ev} WHERE day = to_date(dd_now())",
    "months": "SELECT id FROM {ev} WHERE add_months(day, 1) > dd_now() OR k = 1",
    "null moment": "SELECT id FROM {ev} WHERE ts > nullif(dd_now(), TIMESTAMP'2024-03-28 21:00:00') - INTERVAL 1 DAY",
    "age": "SELECT id, datediff(dd_now(), ts) AS age FROM {ev}",
    "grouped": "SELECT k, count(*) AS n, sum(v) AS s, max(ts) AS hi FROM {ev} WHERE ts > dd_now() - INTERVAL 1 DAY GROUP BY k",
    "inside": "SELECT k, sum(CASE WHEN until < dd_now() THEN v END) AS past, max(dd_now()) AS t FROM {ev} GROUP BY k",
    "filter": "SELECT count(*) FILTER (WHERE ts < dd_now()) AS n FROM {ev}",
    "by age": "SELECT datediff(dd_now(), ts) AS age, count(*) AS n FROM {ev} GROUP BY 1",
    "having": "SELECT k, max(ts) AS hi FROM {ev} GROUP BY k HAVING max(ts) < dd_now() - INTERVAL 1 DAY",
    "joined": "SELECT a.id, b.id AS other FROM {ev} a JOIN {ev} b ON a.k = b.k AND a.ts < b.ts AND b.ts > dd_now()",
    "both sides": "SELECT a.id, b.id AS other FROM {ev} a JOIN {ev} b ON a.k = b.k AND least(a.ts, b.ts) > dd_now()",
    "left": "SELECT a.id, b.id AS other FROM {ev} a LEFT JOIN {ev} b ON a.k = b.k AND b.until < dd_now()",
    "left on both": "SELECT a.id, b.id AS other FROM {ev} a LEFT JOIN {ev} b ON a.k = b.k AND least(a.ts, b.ts) < dd_now()",
    "anti": "SELECT id FROM {ev} a WHERE NOT EXISTS (SELECT 1 FROM {ev} b WHERE b.k = a.k AND b.ts > dd_now())",
    "in": "SELECT id FROM {ev} WHERE k NOT IN (SELECT k FROM {ev} WHERE until < dd_now())",
    "scalar": "SELECT id, (SELECT max(v) FROM {ev} WHERE ts < dd_now()) AS hi FROM {ev} WHERE k = 1",
    "window": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY abs(datediff(dd_now(), ts)), id) AS r FROM {ev}",
    "above a window": "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY ts, id) + day(dd_now()) AS r FROM {ev}",
    "nearest": "SELECT id FROM {ev} ORDER BY abs(unix_seconds(ts) - unix_seconds(dd_now())), id LIMIT 3",
    "exploded": "SELECT id, e FROM {ev} LATERAL VIEW explode(sequence(0, datediff(dd_now(), ts) % 3)) x AS e WHERE ts < dd_now()",
    "union": "SELECT id FROM {ev} WHERE ts > dd_now() UNION ALL SELECT id FROM {ev} WHERE until < dd_now()",
    "distinct": "SELECT DISTINCT k FROM {ev} WHERE ts > dd_now() - INTERVAL 1 DAY",
    "alone": "SELECT dd_now() AS t, 1 AS one",
    "chain": "SELECT n, count(*) AS many FROM {m_grouped} GROUP BY n",
}


def row(rng: random.Random, id: int, now: datetime) -> tuple[Any, ...]:
    """An event within some days of now, or without times."""
    ts = now + timedelta(hours=rng.randint(-80, 60), minutes=rng.randint(0, 59))
    if rng.random() < 0.15:
        return (id, rng.choice([1, 2, None]), None, None, None, rng.randint(0, 5))
    until = ts + timedelta(hours=rng.randint(0, 50))
    return (id, rng.choice([1, 2, 3, None]), ts, until, ts.date(), rng.choice([1, 2, 5, None]))


def test_exact_as_time_passes(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, list(QUERIES)[::2], [(0, 0), (3, 0), (30, 4)])


@pytest.mark.slow
def test_all_are_exact_as_time_passes(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, list(QUERIES), [(0, 0), (3, 0), (0.001, 3), (30, 4), (70, 0)])


def test_exact_in_spark_as_time_passes(spark: SparkSession, tmp_path: Path, in_spark: Thresholds) -> None:
    run(spark, tmp_path, list(QUERIES)[::4], [(0, 0), (30, 2)], thresholds=in_spark)


def run(
    spark: SparkSession,
    folder: Path,
    titles: list[str],
    steps: list[tuple[float, int]],
    queries: dict[str, str] = QUERIES,
    thresholds: Thresholds | None = None,
) -> None:
    """Steps of hours that pass and rows that arrive; all failures are told together."""
    rng = random.Random(4)
    world = World(spark, folder, {"ev": Table(DDL)}, thresholds)
    for title in titles:
        world.model(f"m_{title.replace(' ', '_')}", queries[title])
    now = START
    world.insert("ev", [row(rng, i, now) for i in range(30)])
    failures: list[str] = []
    for hours, arrivals in steps:
        now += timedelta(hours=hours)
        world.time = int(now.timestamp() * 1000)
        world.insert("ev", [row(rng, 100 + int(now.timestamp()) + i, now) for i in range(arrivals)])
        world.delete("ev", rng.sample(world.tables["ev"].rows, arrivals))
        failures += world.step_and_check_each(fallback="recompute" if queries is CLOCK else "error")
    assert not failures, "\n\n".join(failures)


CLOCK = {
    "after": "SELECT id, v FROM {ev} WHERE ts > current_timestamp() - INTERVAL 2 DAYS",
    "today": "SELECT id, current_date AS today FROM {ev} WHERE day >= current_date - 1",
    "age": "SELECT id, datediff(curdate(), day) AS age, hour(localtimestamp()) AS h FROM {ev} WHERE until > now()",
    "stamped": "SELECT id, current_timestamp AS loaded_at, unix_timestamp() AS s FROM {ev}",
    "of_the_day": "SELECT id FROM {ev} WHERE date_format(ts, 'HH:mm') > date_format(localtimestamp(), 'HH:mm') OR ts < DATE 'today'",
    "recomputed": "SELECT k, n FROM (FROM {ev} |> WHERE ts < now() |> AGGREGATE count(*) AS n GROUP BY k)",
}


def test_functions_of_the_clock_are_the_time_of_the_run(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, list(CLOCK), [(0, 0), (0.001, 1), (30, 2)], CLOCK)


def test_a_column_of_the_runs_time_is_hinted_at(spark: SparkSession, tmp_path: Path) -> None:
    """Every row is another one; the SQL's own names of columns are Spark's."""
    world = World(spark, tmp_path, {"ev": Table(DDL)})
    world.model("m", "SELECT id, now() FROM (SELECT id FROM {ev} UNION ALL SELECT -id FROM {ev})")
    world.insert("ev", [(1, 1, None, None, None, 1)])
    world.step()
    outcome = world.step()["m"]
    assert world.found("m").columns == ["id", "now()"]
    assert (outcome.strategy, outcome.rows_added, outcome.rows_removed) == ("delta", 2, 2)
    assert "now() is the time of the run, so that all rows change" in outcome.message
    world.model("m", "SELECT id, datediff(now(), day) AS age FROM {ev}")
    assert not world.step()["m"].notes


def test_a_value_of_the_invocation_is_hinted_at(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"ev": Table(DDL)})
    clock = datetime.now(UTC)
    told = []
    for text in (f"'{clock}'", f"'{clock + timedelta(seconds=9)}'", "'run1004'", "'a word'"):
        world.model("m", f"SELECT id, {text} AS at_ FROM {{ev}}")
        told.append(world.step()["m"].message)
    assert ["dd_now()" in said for said in told] == [False, True, False, False]
    assert ["invocation_id" in said for said in told] == [False, False, False, False]
    world.model("m", f"SELECT id, 'run{world.time + 1}' AS at_ FROM {{ev}}")
    assert "Leave invocation_id out" in world.step()["m"].message


def test_a_filter_reads_only_what_crosses(spark: SparkSession, tmp_path: Path) -> None:
    """An hour later, the delta of a filter is what came in between the two times."""
    world = World(spark, tmp_path, {"ev": Table(DDL)})
    world.model("m", "SELECT id FROM {ev} WHERE ts > dd_now() - INTERVAL 2 DAYS")
    world.time = int(START.timestamp() * 1000)
    times = [START + timedelta(hours=i) for i in range(-100, 0)]
    world.insert("ev", [(i, 1, ts, ts, ts.date(), 1) for i, ts in enumerate(times)])
    world.step(fallback="error")
    world.time += HOUR
    outcome = world.step(fallback="error")["m"]
    assert (outcome.strategy, outcome.rows_added, outcome.rows_removed) == ("delta", 0, 1)
    world.check()
