"""The first rows of each group, from those that are stored: exact while rows come and go, and seldom read anew."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.render import groups
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "k INT, v INT, s STRING, x DOUBLE"
NUMBERED = "SELECT {columns} FROM {{t}} QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {order}) <= {limit}"
MODELS = {
    "latest": NUMBERED.format(columns="k, v, s", keys="k", order="v DESC, s", limit=1),
    "three": NUMBERED.format(columns="k, v, s", keys="k", order="v NULLS LAST, s DESC", limit=3),
    "by_two": NUMBERED.format(columns="k, s, v", keys="k, s", order="v", limit=2),
    "doubles": NUMBERED.format(columns="k, v, s, x", keys="k", order="v, s, x", limit=2),
    "counted": "SELECT s, count(*) AS n, sum(v) AS v FROM {three} GROUP BY s",
    "filtered": "SELECT k, v FROM ({latest_sql}) WHERE s <> 'b'",
}
MODELS["filtered"] = MODELS["filtered"].replace("{latest_sql}", MODELS["latest"])


def _row(rng: random.Random) -> tuple[Any, ...]:
    return rng.choice([None, 1, 2, 3]), rng.choice([None, 1, 2, 3, 4, 5]), rng.choice([None, "a", "b"]), rng.random()


@pytest.mark.parametrize("seed", [1, 2])
def test_it_stays_exact(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Rows come several times, go from the middle of a group, its beginning and its end; groups come and go."""
    world = World(spark, tmp_path, {"t": Table(COLUMNS)})
    for name, sql in MODELS.items():
        world.model(name, sql)
    rng = random.Random(seed)
    for step in range(10):
        rows = world.tables["t"].rows
        gone = rng.sample(rows, rng.randint(0, len(rows)) if step % 4 == 3 else min(len(rows), rng.randint(1, 3)))
        world.delete("t", gone)
        again = [rng.choice(rows)] * 2 if rows else []
        world.insert("t", [*again, *(_row(rng) for _ in range(rng.randint(0, 20) if step % 3 == 0 else 3))])
        world.step_exactly(step)


def test_the_input_is_read_only_where_the_stored_rows_do_not_tell(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    moved = groups.moved
    monkeypatch.setattr(groups, "moved", lambda *args: read.append(world.time) or moved(*args))
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")})
    world.insert("t", [(k, v) for k in range(3) for v in range(10)])
    world.model("m", "SELECT k, v FROM {t} QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 2")
    world.step()
    begun = world.time
    changes: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [
        ([], [(0, 20), (1, 5), (7, 1)]),  # a new first row, one behind, a new group
        ([(0, 3), (2, 0)], []),  # rows behind go
        ([(1, 9)], [(1, 30)]),  # an update of the first row that stays there
        ([(2, 9)], [(2, 2)]),  # one that falls behind: the next one is not known
        ([(7, 1)], [(7, 0)]),  # of a group all of whose rows are known
    ]
    for gone, new in changes:
        world.delete("t", gone)
        world.insert("t", new)
        world.step()
        world.check()
    assert read == [begun, begun + 4]
