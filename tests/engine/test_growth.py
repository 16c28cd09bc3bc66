"""Windows over partitions that grow at their end: extended from their last rows, and as exact as any."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.render import groups
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BY_PEERS = (
    *("sum(v)", "sum(d)", "count(*)", "count(v)", "min(s)", "max(v)", "bool_or(v > 4)", "bit_xor(v)"),
    *("sum(v) FILTER (WHERE s = 'a')", "count(*) FILTER (WHERE s = 'a')", "rank()", "dense_rank()"),
)
_BY_ROWS = (
    *("sum(f)", "max(d) FILTER (WHERE v > 2)", "first_value(v)", "first_value(v) IGNORE NULLS", "row_number()"),
    *("last_value(s) IGNORE NULLS", "last_value(v)", "lag(v)", "lag(v, 2, -1)", "dense_rank()"),
)
_MOVING = (
    *(
        "avg(v) OVER (w ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "sum(d) OVER (w ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    ),
    *("max(s) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", "collect_list(v) OVER (w ROWS 2 PRECEDING)"),
    *("stddev(v) OVER (w ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)", "first_value(v) OVER (w ROWS 1 PRECEDING)"),
)
_AHEAD = ("lead(v)", "lead(s, 2, 'none')", "sum(v)", "row_number()", "dense_rank()")
_PEERS = "PARTITION BY k ORDER BY ts"
_ROWS = "PARTITION BY k ORDER BY ts, v, d, f, s"


def _all(calls: tuple[str, ...], window: str, first: str = "c") -> str:
    return ", ".join(f"{call} OVER ({window}) AS {first}{i}" for i, call in enumerate(calls))


MODELS = {
    "running": f"SELECT *, {_all(_BY_PEERS, _PEERS)}, {_all(_BY_ROWS, _ROWS, 'r')} FROM {{t}}",
    "rows": "SELECT k, ts, sum(v) OVER (PARTITION BY k ORDER BY ts DESC, v, d, f, s ROWS UNBOUNDED PRECEDING) AS a,"
    " sum(v) OVER (PARTITION BY k ORDER BY ts DESC) AS b, rank() OVER (PARTITION BY k ORDER BY ts DESC, v) AS c FROM {t}",
    "moving": f"SELECT *, {', '.join(f'{c} AS c{i}' for i, c in enumerate(_MOVING))} FROM {{t}}".replace(
        "w ROWS", f"{_ROWS} ROWS"
    ),
    "ahead": f"SELECT k, ts, v, {_all(_AHEAD, _ROWS)} FROM {{t}}",
    "whole": "SELECT ts, sum(v) OVER (ORDER BY ts) AS a, lag(d) OVER (ORDER BY ts, v, d) AS b FROM {t}",
    "below": "SELECT k, max(a) AS a, count(*) AS n FROM"
    " (SELECT k, sum(v) OVER (PARTITION BY k, s ORDER BY ts) AS a FROM {t}) GROUP BY k",
}


class _Clock:
    """Rows whose ``ts`` mostly goes on."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._now = rng, 0

    def row(self, late: bool = False) -> tuple[Any, ...]:
        rng = self._rng
        self._now += rng.choice([0, 1, 1, 1, 2])
        ts = rng.choice([None, rng.randint(0, self._now)]) if late else self._now
        value = rng.choice([None, 1, 2, 5, -3])
        price = rng.choice([None, Decimal("0.10"), Decimal("-7.25")])
        return rng.choice(["x", "y", None]), ts, value, price, rng.choice([0.1, -0.0, 1e16]), rng.choice(["a", None])


DDL = "k STRING, ts INT, v INT, d DECIMAL(10,2), f DOUBLE, s STRING"


@pytest.mark.parametrize("seed", [1, 2])
def test_it_stays_exact(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    world = World(spark, tmp_path, {"t": Table(DDL)}, Thresholds(recomputed_rows=seed % 2 * 4))
    for name, sql in MODELS.items():
        world.model(name, sql)
    rng = random.Random(seed)
    clock = _Clock(rng)
    for step in range(9):
        rows = world.tables["t"].rows
        if step in (4, 7):
            world.delete("t", rng.sample(rows, 2))
        elif step == 6:
            world.delete("t", [row for row in rows if row[0] == "x"])
        made = [clock.row(late=step == 5 and rng.random() < 0.3) for _ in range(rng.randint(0 if step % 2 else 3, 6))]
        world.insert("t", [*made, *made[:1]])
        world.step_exactly(step)


def test_a_partition_that_grows_at_its_end_is_not_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recomputed: list[int] = []
    moved = groups.moved
    monkeypatch.setattr(groups, "moved", lambda *args: recomputed.append(world.time) or moved(*args))
    world = World(spark, tmp_path, {"t": Table("k STRING, ts INT, v INT")}, Thresholds(recomputed_rows=0))
    world.insert("t", [("x", ts, ts) for ts in range(20)])
    world.model(
        "m",
        "SELECT k, ts, sum(v) OVER (PARTITION BY k ORDER BY ts) AS a, lag(v) OVER (PARTITION BY k ORDER BY ts) AS b FROM {t}",
    )
    world.step()
    for rows in ([("x", 20, 1)], [("x", 21, 1), ("x", 22, 1)], [("x", 22, 5)], [("x", 30, 1)]):
        world.insert("t", rows)
        world.step()
        world.check()
    assert recomputed == [1_001, 1_004]
