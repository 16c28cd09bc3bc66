"""Deltas of more rows than ``local_rows``: on the driver where it has room for all that a model reads, else in Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.asked import ListeningSession
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation import room
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "groups": "SELECT k % 5 AS g, sum(v) AS v, count(*) AS n FROM {t} GROUP BY 1",
    "joined": "SELECT t.k, t.v, u.w FROM {t} t JOIN {u} u ON t.k = u.k",
    "left": "SELECT t.k, u.w FROM {t} t LEFT JOIN {u} u ON t.k = u.k AND t.v < u.w",
    "without": "SELECT * FROM {t} t WHERE NOT EXISTS (SELECT 1 FROM {u} u WHERE u.k = t.k)",
    "most": "SELECT k, max(v) AS v FROM {t} GROUP BY k",
    "different": "SELECT DISTINCT k, v % 2 AS v FROM {t}",
}
FEW = Thresholds(local_rows=10, task_rows=5, broadcast_rows=10)


@pytest.mark.parametrize("shares", [None, 1 << 60], ids=["room", "no_room"])
def test_they_are_exact(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: int | None
) -> None:
    if shares is not None:
        monkeypatch.setattr(room, "_SHARE_OF_PLAN", shares)
    world = World(spark, tmp_path, {"t": Table("k INT, v BIGINT"), "u": Table("k INT, w BIGINT")}, FEW)
    for name, sql in MODELS.items():
        world.model(name, sql)
    rng = random.Random(3)
    asked: dict[str, list[str]] = {}
    for step in range(3):
        for name, table in world.tables.items():
            world.delete(name, rng.sample(table.rows, len(table.rows) // 3))
            world.insert(name, [(rng.randint(0, 30), rng.randint(0, 9)) for _ in range(60)])
        session = ListeningSession(spark)

        def check(name: str, session: ListeningSession = session) -> None:
            asked[name] = list(session.asked)
            session.asked.clear()
            world.check(name)

        assert world.step_and_check_each(check, session=session if step else None, fallback="error") == []
        if step:
            assert set(map(bool, asked.values())) == {shares is not None}, asked


def test_what_no_operator_asks_for_takes_no_room(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums and projections of a change need room for the change alone; a join needs it for all that it may look up."""
    models = {
        "groups": (MODELS["groups"], False),
        "of_groups": (
            "SELECT g, v + 1 AS v FROM (SELECT k % 5 AS g, sum(v) AS v FROM {t} GROUP BY 1) WHERE v > 3",
            False,
        ),
        "rows": ("SELECT k, v * 2 AS v FROM {t} WHERE k > 3 UNION ALL SELECT k, w FROM {u}", False),
        "most": (MODELS["most"], True),
        "joined": (MODELS["joined"], True),
        "of_join": ("SELECT k, sum(w) AS w FROM (SELECT t.k, u.w FROM {t} t JOIN {u} u ON t.k = u.k) GROUP BY k", True),
        "beside": ("SELECT k FROM {t} UNION ALL SELECT u.k FROM {u} u LEFT JOIN {t} t ON t.k = u.k", True),
    }
    world = World(spark, tmp_path, {"t": Table("k INT, v BIGINT"), "u": Table("k INT, w BIGINT")}, FEW)
    rng = random.Random(4)
    for name, (sql, _) in models.items():
        world.model(name, sql)
    for step, rows in enumerate((2_000, 30, 30)):
        for name in world.tables:
            world.insert(name, [(rng.randint(0, 400), rng.randint(0, 9)) for _ in range(rows)])
        session = ListeningSession(spark)
        asked: dict[str, bool] = {}

        def check(name: str, session: ListeningSession = session, asked: dict[str, bool] = asked) -> None:
            asked[name] = bool(session.asked)
            session.asked.clear()
            world.check(name)

        if step == 2:  # the states are there
            monkeypatch.setattr(room, "machine_memory", lambda: 8 * 20_000)
        assert world.step_and_check_each(check, session=session if step else None, fallback="error") == []
    assert asked == {name: in_spark for name, (_, in_spark) in models.items()}


@pytest.mark.timeout(120)
def test_first_runs_over_empty_inputs_of_any_type(spark: SparkSession, tmp_path: Path) -> None:
    """Also of those whose rows Arrow does not read: of none of them there are none to wait for."""
    kinds = ("ARRAY<STRING>", "MAP<STRING, INT>", "STRUCT<a: INT, b: ARRAY<INT>>", "BINARY", "DECIMAL(38,4)", "DOUBLE")
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    world = World(spark, tmp_path, {"t": Table(f"k INT, {columns}"), "u": Table(f"k INT, {columns}")})
    world.model("all_of_it", "SELECT * FROM {t}")
    world.model("joined", "SELECT t.k, t.c0, u.c1, u.c2 FROM {t} t LEFT JOIN {u} u ON t.k = u.k")
    world.model("counted", "SELECT k, count(c0) AS n, max(c4) AS most FROM {t} GROUP BY k")
    rows = [(n, ["x"], {"a": n}, (n, [n]), b"b", None, 0.5) for n in range(3)]
    for step in range(4):
        if step in (1, 2):
            world.insert("tu"[step - 1], rows)
        world.step()
        world.check()
