"""Syntax that few queries have is exact in every run."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "id INT, k INT, v BIGINT, ts TIMESTAMP"
OVER = "PARTITION BY k ORDER BY ts RANGE BETWEEN"
FRAMES = (
    f"SELECT id, sum(v) OVER ({OVER} INTERVAL 1 DAY 2 HOURS PRECEDING AND CURRENT ROW) AS x FROM {{t}}",
    f"SELECT id, count(*) OVER ({OVER} INTERVAL '1 2' DAY TO HOUR PRECEDING AND INTERVAL 1 DAY 1 HOUR FOLLOWING) "
    "AS x FROM {t}",
)
TABLES = (
    "TABLE {t}",
    "TABLE {t} ORDER BY ts, id LIMIT 2",
    "WITH x AS (TABLE {t}) SELECT k, count(*) AS n FROM x GROUP BY k",
    "TABLE {t} UNION ALL TABLE {t}",
)


def test_frames_of_intervals_and_table_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Models by TABLE are kept by deltas; frames of several units have at least a reason that can be read."""
    world = World(spark, tmp_path, {"t": Table(DDL)})
    schema = schema_of(spark.createDataFrame([], DDL).schema)
    for i, sql in enumerate((*FRAMES, *TABLES)):
        world.model(f"m{i}", sql)
        reasons = compile_model(
            LazySession.of(spark), "m", parsed(sql.replace("{t}", "t")), {"t": Input("t", schema)}
        ).plan.fallbacks
        assert all(len(reason.split()) > 2 and "()" not in reason for reason in reasons), reasons
        assert sql in FRAMES or not reasons, reasons
    start = datetime(2024, 1, 1, 10)
    rows = [(i, i % 2, i, start + i * timedelta(hours=13)) for i in range(6)]
    world.insert("t", [*rows, (9, 1, None, None)])
    for step in range(3):
        failures = world.step_and_check_each(threads=3)
        assert not failures, "\n\n".join([f"step {step}", *failures])
        world.delete("t", [rows[step]])
        world.insert("t", [(10 + step, step, 1, start + timedelta(hours=26 * step))])


def test_not_in_in_on_of_an_outer_join_is_what_spark_makes_of_it(spark: SparkSession, tmp_path: Path) -> None:
    """A NULL in the list counts where Spark pushes the condition down, and nowhere else: so Spark answers the query."""
    world = World(spark, tmp_path, {"a": Table("k INT"), "b": Table("k INT")})
    for side in ("LEFT", "RIGHT", "FULL"):
        for item in ("x", "y"):
            on = f"x.k = y.k AND {item}.k NOT IN (SELECT k FROM {{b}})"
            world.model(f"{side}_{item}".lower(), f"SELECT x.k, y.k AS other FROM {{a}} x {side} JOIN {{a}} y ON {on}")
    world.insert("a", [(1,), (2,), (None,)])
    world.insert("b", [(1,), (None,)])
    world.step()
    world.check()
    world.delete("b", [(1,), (None,)])
    world.insert("b", [(2,)])
    world.step()
    world.check()
