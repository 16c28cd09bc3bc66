"""Lowering is exact: for every query of ``meaning/*.sql`` the plan has Spark's own rows, names and types."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark.sql import functions as F

from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.lower import lower
from dbt_incremental_dd.frontend.parsed import ParsedQuery, parsed
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.logical.dialect import VerbatimSpark
from dbt_incremental_dd.logical.explain import explain
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Fallback, Join, Map, Negate, OuterJoin, Reduce, Union, Window
from dbt_incremental_dd.logical.passes import optimize
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.render.types import PlanTypes
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.frontend.interpreter import Interpreter
from tests.logical.cross_products import untied
from tests.oracle import table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = """id INT, k INT, v BIGINT, s STRING, d DECIMAL(8,2), f DOUBLE, ts TIMESTAMP, day DATE, b BOOLEAN,
    arr ARRAY<INT>, m MAP<STRING,INT>, st STRUCT<x: INT, y: STRING, deep: STRUCT<z: BIGINT>>,
    items ARRAY<STRUCT<x: INT, y: STRING>>"""
U = "k INT, w STRING, n DECIMAL(10,3), t STRUCT<k: INT, q: STRING>"
SALES = "id INT, k INT, amount DECIMAL(12,2), `a b` STRING"


class Case(NamedTuple):
    """A query; ``fallback``: the reason why (a part of) it is kept as text, empty where nothing is."""

    name: str
    sql: str
    fallback: str


def cases() -> list[Case]:
    """Blocks of ``-- title`` or ``-- title | fallback: reason``, the query, and an empty line."""
    found = []
    for path in sorted((Path(__file__).parent / "meaning").glob("*.sql")):
        for block in re.split(r"\n\s*\n", path.read_text().strip()):
            title, _, sql = block.strip().partition("\n")
            name, _, fallback = title.removeprefix("-- ").partition(" | fallback: ")
            found.append(Case(f"{path.stem}: {name}", sql.strip(), fallback.strip()))
    return found


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, Input]:
    """``t`` (ids are distinct), ``u`` (whole rows repeat), ``e`` (empty), and ``shop.sales`` in a schema."""
    rng = random.Random(7)
    table_of(spark, [row_t(rng, i) for i in range(40)], T).createOrReplaceTempView("t")
    table_of(spark, [row_u(rng, i) for i in range(14)], U).createOrReplaceTempView("u")
    table_of(spark, [], "k INT, v BIGINT").createOrReplaceTempView("e")
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    sales = [row_sales(rng, i) for i in range(12)]
    table_of(spark, sales, SALES).write.mode("overwrite").saveAsTable("shop.sales")
    return {key: Input(key, schema_of(spark.table(key).schema)) for key in ("t", "u", "e", "shop.sales")}


def row_t(rng: random.Random, i: int) -> tuple[Any, ...]:
    """A row of ``t`` with NULLs, whose values often repeat."""

    def some(*values: Any) -> Any:
        return rng.choice([*values, None])

    x, y = some(1, 2), some("p", "q")
    return (
        i,
        some(1, 2, 3, 4),
        some(1, 2, 5, 9, -3),
        some("x", "y", "Zed", "", "a%b"),
        some(Decimal("1.25"), Decimal("-3.10"), Decimal("0.00")),
        some(0.5, -2.0, float("nan"), 0.0),
        some(datetime(2020, 1, 1, 10), datetime(2020, 1, 2, 23, 59)),
        some(date(2020, 1, 1), date(2020, 2, 29)),
        some(True, False),
        some([1, 2], [], [3, None], [2]),
        some({"p": 1}, {"q": 2, "p": 3}, {}),
        some((x, y, (some(7, 8),)), (x, y, None)),
        some([(1, "one"), (2, "two")], [], [(3, None)]),
    )


def row_sales(rng: random.Random, i: int) -> tuple[Any, ...]:
    """A row of ``shop.sales``."""
    return (i, rng.choice([1, 2, 3, None]), Decimal(i), rng.choice("xy"))


def row_u(rng: random.Random, i: int) -> tuple[Any, ...]:
    """A row of ``u``."""
    k = rng.choice([1, 2, 3, 7, None])
    w = rng.choice(["p", "x", None])
    return (k, w, rng.choice([Decimal("1.250"), Decimal("2")]), (rng.choice([1, 5]), w))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_plan_means_what_the_query_means(spark: SparkSession, tables: dict[str, Input], case: Case) -> None:
    wanted = spark.sql(case.sql)
    query = parsed(case.sql)
    before = _links(query)
    inputs = {relation.key: tables[relation.key] for relation in query.relations}
    types = PlanTypes(LazySession.of(spark), {given.collection: given.schema for given in inputs.values()})
    text, keys = template(query, inputs)
    output = types.of_sql(text, [inputs[key].schema for key in keys])
    lowered = lower(query, inputs, output, types.of_sql)
    assert _links(query) == before
    plan = optimize(lowered.plan)
    shown = f"lowered:\n{explain(lowered.plan)}\noptimized:\n{explain(plan)}"
    assert plan.columns == lowered.plan.columns, shown
    assert not untied(plan, lowered.plan), shown
    meant = Interpreter(spark)
    made = meant.frame(plan).toDF(*lowered.names)
    assert _types(made) == _types(wanted), shown
    for node in {id(node): node for node in lowered.plan.walk() if _has_own_types(node)}.values():
        assert types.of(node) == schema_of(meant.frame(node).schema), f"{explain(node)}\n{shown}"
    missing, extra = _difference(wanted, made)
    assert not extra and not missing, f"extra {extra}, missing {missing}\n{shown}"
    reasons = {node.reason for node in plan.walk() if isinstance(node, Fallback)}
    assert reasons == ({case.fallback} if case.fallback else set()), shown


def _links(query: ParsedQuery) -> tuple[str, list[tuple[object, ...]]]:
    """The query's tree: its text, and how its nodes hang together."""
    nodes = [(id(node), type(node), id(node.parent), node.arg_key, node.index) for node in query.tree.walk()]
    return query.tree.sql(dialect=VerbatimSpark), nodes


def _has_own_types(node: Node) -> bool:
    """Whether it makes columns or may change types, and is a multiset that Spark can have."""
    return isinstance(node, Map | Join | OuterJoin | Reduce | Window | Union) and not any(
        isinstance(below, Negate) for below in node.walk()
    )


def _types(rows: Any) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in rows.schema]


def _difference(wanted: DataFrame, made: DataFrame) -> tuple[Counter[str], Counter[str]]:
    """The rows that only one of them has, by one job."""
    names = [f"column_{i}" for i in range(len(wanted.columns))]
    sides = [rows.toDF(*names).withColumn("side", F.lit(i)) for i, rows in enumerate((wanted, made))]
    found: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for row in sides[0].union(sides[1]).collect():
        found[row["side"]][repr([_plain(value) for value in row[:-1]])] += 1
    return found[0] - found[1], found[1] - found[0]


def _plain(value: Any) -> Any:
    """Maps have no order."""
    if isinstance(value, dict):
        return sorted((str(key), _plain(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
