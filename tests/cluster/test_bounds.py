"""A change larger than the driver's bounds stays with the workers: nothing brings more rows than the bounds say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

BOUND = 50
ROWS = 200


def test_nothing_brings_more_rows_to_the_driver_than_the_bounds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        "local_rows",
        "task_rows",
        "taken_rows",
        "probed_rows",
        "found_rows",
        "built_rows",
        "joined_rows",
        "broadcast_rows",
    ]
    tables = {"t": Table("k INT, v INT"), "u": Table("k INT, n STRING")}
    world = World(spark, tmp_path, tables, Thresholds.of(dict.fromkeys(names, BOUND)))
    world.model("sums", "SELECT k, sum(v) AS v, count(*) AS n FROM {t} GROUP BY k")
    world.model("joined", "SELECT t.k, n, v FROM {t} t JOIN {u} u ON t.k = u.k WHERE v > 3")
    world.model("best", "SELECT k, max(v) AS most FROM {t} GROUP BY k")
    world.model("ranked", "SELECT k, v, row_number() OVER (PARTITION BY k % 7 ORDER BY v, k) AS n FROM {t}")
    brought: list[int] = []
    _watch(spark, monkeypatch, brought)
    for step in range(2):
        world.insert("t", [(n, n % 11 + step) for n in range(step, ROWS + step)])
        world.insert("u", [(n, f"{step}") for n in range(step, ROWS + step, 2)])
        if step:
            world.delete("t", [(n, n % 11 + step - 1) for n in range(step, ROWS // 2)])
        brought.clear()
        world.step()
        assert brought and max(brought) <= BOUND + 1, max(brought)
        world.check()


def _watch(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, brought: list[int]) -> None:
    """Every way that the package has of bringing rows tells how many came."""
    kind = type(spark.range(1))
    for name in ("toArrow", "collect"):
        bring: Any = getattr(kind, name)

        def telling(frame: Any, bring: Any = bring) -> Any:
            found = bring(frame)
            if frame.columns != ["function"]:  # what functions Spark has is asked of its catalog
                brought.append(len(found))
            return found

        monkeypatch.setattr(kind, name, telling)
