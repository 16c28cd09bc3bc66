"""Recursions that have no end, or that take away what they have found: told clearly, and nothing is stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import DifferentialError, RecursionLimit, UnsupportedSQL
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EDGES = [(1, 2), (2, 3), (3, 1)]
NEGATED = "m: r is recursive through negation"
ENDLESS = "m: the recursion of r has not come to an end"

REFUSED = {
    "not exists": ("select a from {edges} union select e.b from {edges} e where not exists (select 1 from r where r.a = e.b)", NEGATED),
    "not in": ("select a from {edges} union select b from {edges} where b not in (select a from r)", NEGATED),
    "anti join": ("select a from {edges} union select e.b from {edges} e left anti join r on r.a = e.b", NEGATED),
    "except": ("select a from {edges} except select a + 1 from r", NEGATED),
    "left join": ("select a from {edges} union select e.b from {edges} e left join r on r.a = e.a", NEGATED),
    "nothing to begin with": ("select a + 1 as a from r", "cannot be told: all of it is recursive"),
    "types that widen": ("select cast(a as decimal(3,1)) from {edges} union select a * 1.5 from r where a < 3", "get other types with each iteration"),
    "an unknown column": ("select a from {edges} union select r.zz from r", "`r`.`zz` cannot be resolved"),
    "the clock": ("select a from {edges} union select a + 1 from r where a < 5 and dd_now() > timestamp'2000-01-01'", "dd_now(), inside of the recursive r"),
}  # fmt: skip

ENDLESS_QUERIES = {
    "new rows for ever": "with recursive r(a) as (select a from {edges} union select a + 1 from r) select * from r",
    "the same rows ever more often": "with recursive r(a, b) as (select a, b from {edges} union all select r.a, e.b from r join {edges} e on e.a = r.b) select * from r",
    "a value that goes to and fro": "with recursive r max recursion level 30 as (select max(a) as a from (select 0 as a union all select 1 - a from r)) select * from r",
    "its own limit": "with recursive r(a) max recursion level 5 as (select a from {edges} union select a + 1 from r where a < 20) select * from r",
}


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    """One table of edges in a circle."""
    made = World(spark, tmp_path_factory.mktemp("world"), {"edges": Table("a INT, b INT", list(EDGES))})
    made.step()
    return made


def _refused(world: World, sql: str, kind: type[DifferentialError]) -> str:
    world.models = {"m": sql}
    with pytest.raises(kind) as error:
        world.step()
    assert world.storage.collection(f"{world.schema}.m").log() is None
    return str(error.value).replace(f"{world.schema}.m", "m")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_iterated_is_refused(world: World, name: str) -> None:
    body, told = REFUSED[name]
    assert told in _refused(world, f"with recursive r(a) as ({body}) select * from r", UnsupportedSQL)


@pytest.mark.parametrize("name", ENDLESS_QUERIES)
def test_what_has_no_end_is_told(world: World, name: str) -> None:
    message = _refused(world, ENDLESS_QUERIES[name], RecursionLimit)
    assert ENDLESS in message
    assert "still changes (by " in message and "dd_recursion_limit" in message


def test_multiplicities_that_double_are_told(world: World) -> None:
    doubled = "with recursive r(a) as (select a from {edges} union all select r.a from r join (values (1), (2)) x(i)) select count(*) as n from r"
    assert "more than 9,007,199,254,740,992 times" in _refused(world, doubled, RecursionLimit)


def test_an_update_that_has_no_end_leaves_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    """Paths on a graph without circles; then an edge makes one; then it goes."""
    world = World(spark, tmp_path, {"edges": Table("a INT, b INT", [(1, 2), (2, 3), (3, 4)])})
    paths = "with recursive r(a, b) as (select a, b from {edges} union all select r.a, e.b from r join {edges} e on e.a = r.b) select * from r"
    world.model("m", paths)
    world.step(fallback="error")
    before = sorted(map(tuple, world.found("m").collect()))
    world.insert("edges", [(4, 2)])
    with pytest.raises(RecursionLimit, match="has not come to an end: after 1,000 iterations"):
        world.step(fallback="error")
    assert sorted(map(tuple, world.found("m").collect())) == before
    world.delete("edges", [(4, 2), (1, 2)])
    outcome = world.step(fallback="error")["m"]
    assert outcome.strategy == "delta"
    assert sorted(map(tuple, world.found("m").collect())) == [(2, 3), (2, 4), (3, 4)]
    world.check()
