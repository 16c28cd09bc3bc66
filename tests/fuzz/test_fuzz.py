"""A slice of ``make fuzz``."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.grammar import DDL, Grammar
from tests.fuzz.run import change, group
from tests.fuzz.words import LITERALS
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("seed", "size"), [(11, 12), (51, 8)], ids=["on the driver", "in Spark"])
def test_random_queries_are_exact_after_every_step(spark: SparkSession, tmp_path: Path, seed: int, size: int) -> None:
    failures = group(spark, tmp_path, seed, size, depth=4, steps=3)
    assert not failures, "\n\n".join(failures)


def test_random_comma_joins_and_literals_are_exact_after_every_step(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    grammar = Grammar(rng)
    world = World(spark, tmp_path, {"a": Table(DDL), "b": Table(DDL)})
    shapes = [grammar._comma_joined] * 4 + [grammar._having]
    for i, shape in enumerate(shapes):
        world.model(f"m{i}", shape(1))
    world.model("literals", f"SELECT k, v, {', '.join(f'{c} AS l{i}' for i, c in enumerate(LITERALS))} FROM {{a}}")
    for step in range(2):
        for name in world.tables:
            change(world, name, rng, step)
        world.step_exactly(step)
