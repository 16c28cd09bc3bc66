"""Partitions whose functions only look back: exact, and compared only from the first changed row on."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.differential.window_reach import common_order
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.render.window_suffix import Suffix
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_incremental_dd.relation.relation import Relation

BACK = [
    "sum(v) OVER (PARTITION BY k ORDER BY d)",
    "max(v) OVER (PARTITION BY k ORDER BY d RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND CURRENT ROW)",
    "min(v) OVER (PARTITION BY k ORDER BY d, v, s ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "row_number() OVER (PARTITION BY k ORDER BY d, v, s)",
    "dense_rank() OVER (PARTITION BY k ORDER BY d)",
    "lag(v, 2) OVER (PARTITION BY k ORDER BY d, v, s)",
    "last_value(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY d, v, s)",
]
AHEAD = [
    "sum(v) OVER (PARTITION BY k)",
    "sum(v) OVER (PARTITION BY k ORDER BY d, v, s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    "sum(v) OVER (PARTITION BY k ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "sum(v) OVER (PARTITION BY k ORDER BY d ROWS BETWEEN 3 PRECEDING AND -1 PRECEDING)",
    "lead(v) OVER (PARTITION BY k ORDER BY d)",
    "lag(v, -1) OVER (PARTITION BY k ORDER BY d)",
    "ntile(3) OVER (PARTITION BY k ORDER BY d)",
    "cume_dist() OVER (PARTITION BY k ORDER BY d)",
]


@pytest.mark.parametrize("sql", BACK)
def test_functions_that_look_back(sql: str) -> None:
    order = common_order([Expr(sql)])
    assert order is not None and order.expr.sql == "d"


@pytest.mark.parametrize("sql", [*AHEAD, "rank() OVER (PARTITION BY k ORDER BY d + 1)"])
def test_functions_that_look_further(sql: str) -> None:
    assert common_order([Expr(sql)]) is None
    assert common_order([Expr(BACK[0]), Expr(sql)]) is None


def test_functions_of_several_orders_have_none_in_common() -> None:
    assert common_order([Expr(BACK[0]), Expr(BACK[3])])
    assert common_order([Expr(BACK[0]), Expr("rank() OVER (PARTITION BY k ORDER BY v)")]) is None
    assert common_order([Expr(BACK[0]), Expr("rank() OVER (PARTITION BY k ORDER BY d DESC)")]) is None


MODELS = {
    "back": f"SELECT k, d, v, s, {', '.join(f'{sql} AS w{i}' for i, sql in enumerate(BACK))} FROM {{t}}",
    "down": "SELECT k, d, v, sum(v) OVER (PARTITION BY k ORDER BY d DESC NULLS FIRST) AS w,"
    " row_number() OVER (PARTITION BY k ORDER BY d DESC NULLS FIRST, v, s) AS n FROM {t}",
    "ahead": f"SELECT k, d, v, {', '.join(f'{sql} AS w{i}' for i, sql in enumerate(AHEAD[:3]))} FROM {{t}}",
    "later": "SELECT k, max(n) AS n FROM {down} GROUP BY k",
}


def _row(rng: random.Random) -> tuple[Any, ...]:
    day = None if rng.random() < 0.1 else date(2024, 1, 1) + timedelta(days=rng.randrange(20))
    return rng.choice([None, 1, 2]), day, rng.choice([None, 1, 2, 3]), rng.choice("ab")


@pytest.mark.parametrize("seed", [1, 2])
def test_it_stays_exact(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    world = World(spark, tmp_path, {"t": Table("k INT, d DATE, v INT, s STRING")})
    for name, sql in MODELS.items():
        world.model(name, sql)
    rng = random.Random(seed)
    world.insert("t", [_row(rng) for _ in range(60)])
    for step in range(6):
        world.step_exactly(step)
        world.delete("t", rng.sample(world.tables["t"].rows, rng.randint(0, 2)))
        world.insert("t", [_row(rng) for _ in range(rng.randint(1, 2))])


def test_rows_before_the_first_change_are_not_compared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    of = Suffix.of

    def counted(self: Suffix, rows: Relation | None) -> Relation | None:
        found = of(self, rows)
        compared.append(0 if found is None else found.count())
        return found

    world = World(spark, tmp_path, {"t": Table("k INT, d DATE, v INT")})
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(50)]
    world.insert("t", [(k, day, 1) for k in range(2) for day in days])
    world.model("m", "SELECT k, d, v, sum(v) OVER (PARTITION BY k ORDER BY d) AS w FROM {t}")
    world.step()
    monkeypatch.setattr(Suffix, "of", counted)
    world.insert("t", [(0, days[47], 5)])
    world.step()
    world.check()
    assert compared == [4, 3]
