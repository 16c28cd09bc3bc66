"""The frontend's queries as models over tables that change, each exact after every step.

A slice of them by default; all of them with ``-m slow``.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.template import template
from tests.frontend.test_meaning import SALES, Case, T, U, cases, row_sales, row_t, row_u
from tests.oracle import Table, World
from tests.turns import in_turn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SLICE = 20
_ORDERED = ("first", "last", "any_value", "collect_", "array_agg", "listagg", "string_agg", "_by(", "mode(", "approx_")
"""Functions whose answer depends on the order of rows, or that are not exact by themselves."""

_TWO_OF_A_NAME = "has more than one column called"
"""What a query may do, but not a relation."""


def deterministic() -> list[Case]:
    """The cases that have one answer for one content."""
    return [case for case in cases() if not any(word in case.sql.lower() for word in _ORDERED)]


def groups() -> list[list[Case]]:
    """All cases in groups that share a world, in a fixed random order."""
    found = deterministic()
    random.Random(3).shuffle(found)
    return [found[i : i + _SLICE] for i in range(0, len(found), _SLICE)]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(groups())))
def test_all_are_exact_after_every_step(spark: SparkSession, tmp_path: Path, number: int) -> None:
    run(spark, tmp_path, groups()[number], steps=4, seed=number)


@pytest.mark.parametrize("number", [in_turn(len(groups()))])
def test_some_are_exact_after_every_step(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """Another group for each commit that CI sees."""
    run(spark, tmp_path, groups()[number], steps=3, seed=number)


def run(spark: SparkSession, folder: Path, chosen: list[Case], steps: int, seed: int) -> None:
    """Steps of one world with the cases as its models; all failures are told together."""
    rng = random.Random(seed)
    makers = {"t": row_t, "u": row_u, "sales": row_sales, "e": None}
    tables = {"t": Table(T), "u": Table(U), "sales": Table(SALES), "e": Table("k INT, v BIGINT")}
    world = World(spark, folder, tables)
    for i, case in enumerate(chosen):
        query = parsed(case.sql)
        text, keys = template(query, {relation.key: None for relation in query.relations})
        world.model(f"m{i}", text.format(*(f"{world.schema}.{key.split('.')[-1]}" for key in keys)))
    failures: list[str] = []
    number = 0
    for step in range(steps):
        for name, make in makers.items():
            if make is None:
                continue
            rows = world.tables[name].rows
            world.delete(name, rng.sample(rows, min(len(rows), rng.randint(0, 5))))
            fresh = [make(rng, number + i) for i in range(rng.randint(0, 6) + (10 if step == 0 else 0))]
            number += len(fresh)
            world.insert(name, fresh)
        failures += [failure for failure in world.step_and_check_each(threads=3) if _TWO_OF_A_NAME not in failure]
    named = {f"m{i}": case for i, case in enumerate(chosen)}
    shown = [f"{named[f.split(':')[0]].name}: {f}" for f in failures]
    assert not shown, "\n\n".join(shown)
