"""Recursive queries that Spark answers itself, against its answer; and the others against naive iteration by it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from dbt_incremental_dd.runtime.verify import verify_model
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

needs_recursion = pytest.mark.skipif(
    tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 1), reason="Spark answers recursive queries from 4.1 on"
)

LINEAR = {
    "walks": "with recursive r(a, b, n) as (select a, b, 1 from {edges} union all select r.a, e.b, n + 1 from r join {edges} e on e.a = r.b where n < 4) select * from r",
    "null_extended": "with recursive r(a, n) as (select a, 1 from {edges} union all select e.b, n + 1 from r left join {edges} e on e.a = r.a where n < 3) select * from r",
    "only_if": "with recursive r(a, n) as (select a, 1 from {edges} union all select a + 1, n + 1 from r where n < 4 and exists (select 1 from {edges} e where e.a = r.a)) select * from r",
    "two_steps": "with recursive r(a, n) as (select a, 1 from {edges} union all (select a + 1, n + 1 from r where n < 3 union all select a * 2, n + 1 from r where n < 3)) select a, count(*) as c from r group by a",
    "arrays": "with recursive r(a, p) as (select a, array(a) from {edges} union all select e.b, array_append(p, e.b) from r join {edges} e on e.a = r.a where not array_contains(p, e.b)) select * from r",
    "strings": "with recursive r(a, p) as (select a, cast(a as string) from {edges} union all select e.b, p || '-' || e.b from r join {edges} e on e.a = r.a where length(p) < 6) select * from r",
    "of_nothing": "with recursive r(i) as (select 1 union all select i + 1 from r where i < 5) select r.i, e.b from r join {edges} e on e.a = r.i",
    "in_a_subquery": "select e.a, (select max(i) from (with recursive r(i) as (select 1 union all select i + 1 from r where i < 5) select i from r) x where x.i < e.a) as m from {edges} e",
}
SPARKS = {
    "distinct_steps": "with recursive r(i) as (select 1 union all select distinct i + 1 from r join {edges} e on e.a >= r.i where i < 4) select * from r",
    "doubled": "with recursive r(i) as (select 1 union all select x.i + y.i from r x join r y on x.i = y.i where x.i < 9) select r.i, e.b from r join {edges} e on e.a = r.i",
    "ended_early": "with recursive r(i) as (select 1 union all select i + 1 from r) select count(*) as n from {edges} where a in (select i from r limit 3)",
}
OURS = {
    "closure": "with recursive r(a, b) as (select a, b from {edges} union select r.a, e.b from r join {edges} e on e.a = r.b) select * from r",
    "odd": "with recursive odd(a, b) as (select a, b from {edges} union select e.a, v.b from {edges} e join even v on v.a = e.b), even(a, b) as (select e.a, o.b from {edges} e join odd o on o.a = e.b) select * from odd except select * from even",
    "nested": "select x.a, count(*) as n from (with recursive r(a, b) as (select a, b from {edges} union select r.a, e.b from r join {edges} e on e.a = r.b) select * from r) x join {edges} y on y.a = x.b group by x.a",
    "first_path": "with recursive r as (select b, n, p from (select b, 1 as n, cast(b as string) as p from {edges} where a = 1 union all select e.b, n + 1, p || '-' || e.b from r join {edges} e on e.a = r.b where n < 6) x qualify row_number() over (partition by b order by n, p) = 1) select * from r",
    "ranked": "with recursive r as (select a, b, rank() over (partition by a order by b) as k from (select a, b from {edges} union select e.a, r.b from r join {edges} e on e.b = r.a where r.k <= 2) x) select * from r",
}


def _changed(world: World, rng: random.Random) -> None:
    rows = world.tables["edges"].rows
    if rows and rng.random() < 0.5:
        world.delete("edges", [rng.choice(rows)])
    else:
        world.insert("edges", [rng.choice([(rng.randint(1, 5), rng.randint(1, 5)), (rng.randint(1, 5), None)])])


def _world(spark: SparkSession, folder: Path, models: dict[str, str]) -> World:
    world = World(spark, folder, {"edges": Table("a INT, b INT", [(1, 2), (2, 3), (1, 2), (3, 4)])})
    for name, sql in models.items():
        world.model(name, sql)
    return world


@needs_recursion
def test_linear_recursions_are_sparks_answer(spark: SparkSession, tmp_path: Path) -> None:
    world, rng = _world(spark, tmp_path, LINEAR), random.Random(5)
    for _ in range(4):
        world.step_exactly(0)
        _changed(world, rng)


@needs_recursion
def test_where_spark_means_something_else_it_is_recomputed(spark: SparkSession, tmp_path: Path) -> None:
    world = _world(spark, tmp_path, SPARKS)
    for _ in range(2):
        for name, outcome in world.step().items():
            assert outcome.fallbacks, name
        world.check()
        world.insert("edges", [(1, 5)])


def _stays_verified(spark: SparkSession, folder: Path, models: dict[str, str], runs: int, seed: int) -> None:
    """Each model after each run against naive iteration."""
    world, rng = _world(spark, folder, models), random.Random(seed)
    for _ in range(runs):
        world.step(fallback="error")
        for name in models:
            assert verify_model(spark, world.storage, f"{world.schema}.{name}").exact, name
        _changed(world, rng)


def test_others_are_what_naive_iteration_makes(spark: SparkSession, tmp_path: Path) -> None:
    _stays_verified(spark, tmp_path, OURS, runs=4, seed=6)


def test_names_and_columns_may_be_odd(spark: SparkSession, tmp_path: Path) -> None:
    """Names that no folder could have, a binding that is another one, a column twice, one that only NULL begins."""
    odd = {
        "slash": "with recursive `a/../b c`(x, `y z`) as (select a, b from {edges} union select r.x, e.b from `a/../b c` r join {edges} e on e.a = r.`y z`) select * from `a/../b c`",
        "same": "with recursive r(a, b) as (select * from s), s(a, b) as (select a, b from {edges} union select r.a, e.b from r join {edges} e on e.a = r.b) select r.a, s.b from r join s on s.a = r.b",
        "twice": "with recursive r(a, b) as (select a, a from (select a from {edges} union select x.a + 1 from r x join r y on y.b = x.a and y.a = x.b where x.a < 4) z) select * from r",
        "null": "with recursive r(a, p) as (select a, null from {edges} union select e.b, r.a from r join {edges} e on e.a = r.a) select * from r",
    }
    _stays_verified(spark, tmp_path, odd, runs=3, seed=7)
