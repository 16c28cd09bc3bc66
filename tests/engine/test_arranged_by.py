"""A model's ``arranged_by``: columns of any type that has an order, and a clear error for what cannot be sorted by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = "k INT, `b.c` BOOLEAN, x BINARY, d DECIMAL(20,3), i INTERVAL DAY TO SECOND, n TIMESTAMP_NTZ, m MAP<INT,INT>"
ROWS = (
    "(1, true, X'01', 1.5, INTERVAL '1' DAY, TIMESTAMP_NTZ'2024-01-01', map(1, 2))",
    "(2, NULL, NULL, NULL, NULL, NULL, NULL)",
)
ORDER = ("K", "b.c", "x", "d", "i", "n")


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    world = World(spark, tmp_path, {"t": Table("k INT, s STRING")})
    columns = [column.split()[0] for column in TYPES.split(", ")]
    values = f"(SELECT * FROM VALUES {', '.join(ROWS)} AS v({', '.join(columns)}))"
    world.model("m", f"SELECT v.*, t.s, named_struct('a', t.k) AS st FROM {{t}} t JOIN {values} v ON t.k = v.k")
    world.insert("t", [(1, "a"), (2, "b"), (2, None)])
    return world


@pytest.mark.parametrize("engine", ["driver", "spark"])
def test_files_are_sorted(world: World, engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "spark":
        world.storage = replace(world.storage, thresholds=request.getfixturevalue("in_spark"))
    for _ in range(2):
        world.step(arranged_by=(ORDER,), fallback="error")
        world.check()
        world.insert("t", [(1, "c"), (2, "d")])


@pytest.mark.parametrize(
    ("column", "message"), [("nope", "m: arranged_by names nope"), ("m", "sorted by m\n"), ("st", "sorted by st\n")]
)
def test_what_cannot_be_sorted_by_is_refused(world: World, column: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        world.step(arranged_by=((column,),))
    world.step()
    world.check()
