"""Conjuncts move until no cross product is left that an equality of the query ties; text in, plan out, without Spark."""

from __future__ import annotations

import re

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.lower import lower
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.logical.explain import explain
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.joins import components
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Fallback, Filter, Join
from dbt_incremental_dd.logical.passes import optimize
from tests.logical.cross_products import untied

COLUMNS = Schema(tuple(Column(name, INTEGER) for name in "xyzv"))
INPUTS = {name: Input(name, COLUMNS) for name in "abcdes"}
IN = "b.z IN (SELECT z FROM s)"
EXISTS = "EXISTS (SELECT 1 AS one FROM s WHERE s.z = b.z AND s.v > a.v)"
GROUPED = "EXISTS (SELECT s.y FROM s WHERE s.z = b.z AND s.x = c.v GROUP BY s.y HAVING count(*) > 1)"
SCALAR = "b.v > (SELECT max(s.v) AS m FROM s WHERE s.z = b.z)"
LATEST = "c.v > (SELECT s.v FROM s WHERE s.z < b.z ORDER BY s.v LIMIT 1)"
SUBQUERIES = {
    "in": IN,
    "not in": f"NOT {IN}",
    "exists": EXISTS,
    "grouped": GROUPED,
    "scalar": SCALAR,
    "latest": LATEST,
    "in or": f"(a.v > 3 OR {IN})",
    "not in or": f"(b.v > 3 OR NOT {IN})",
    "exists or": f"(a.v > 3 OR {EXISTS})",
    "grouped or": f"(a.v > 3 OR {GROUPED})",
    "scalar or": f"(a.v > 3 OR {SCALAR})",
    "latest or": f"(a.v > 3 OR NOT {LATEST})",
    "two": f"(b.v > 3 OR {IN} OR b.y IN (SELECT y FROM s) OR {EXISTS})",
    "case": f"CASE WHEN {IN} THEN a.v > 1 ELSE {EXISTS} END",
}
TIES = "a.x = b.y AND {} AND b.x = c.x AND c.y = d.y AND d.z = e.z"
"""The equalities that tie all five tables; the subquery stands among them."""
FROM = {
    "where": f"SELECT a.v, e.v AS w FROM a, b, c, d, e WHERE {TIES}",
    "after": "SELECT a.v, e.v AS w FROM a, b, c, d, e WHERE {} AND (d.z = e.z AND c.y = d.y) AND b.x = c.x AND a.x = b.y",
    "on": "SELECT a.v, e.v AS w FROM d, e, a, b JOIN c ON {} WHERE a.x = b.y AND b.x = c.x AND c.y = d.y AND d.z = e.z",
    "selected": f"SELECT a.v, {{}} AS w FROM a, b, c, d, e WHERE {TIES.format('true')}",
    "having": f"SELECT b.z, max(a.v) AS m FROM a, b, c, d, e WHERE {TIES} GROUP BY b.z HAVING b.z IN (SELECT z FROM s) OR max(a.v) > 1",
    "tied outside": "SELECT t.w FROM (SELECT a.x, b.y, b.x AS q, c.y AS r, c.x AS o, b.v AS w FROM a, b, c WHERE {}) t, d, e "
    "WHERE t.x = t.y AND t.q = t.o AND t.r = d.y AND d.z = e.z",
    "tied through another": "SELECT t.w FROM (SELECT a.x, b.y, c.y AS r, b.v AS w FROM a, b, c WHERE {} AND b.x = c.x) t, d "
    "WHERE t.x = d.y AND t.y = d.x",
    "cte": "WITH t AS (SELECT a.x, b.y, b.x AS q, c.x AS o, b.v AS w FROM a, b, c WHERE {}), u AS (SELECT * FROM t) "
    "SELECT w FROM u WHERE x = y AND q = o",
    "distinct": "SELECT w FROM (SELECT DISTINCT a.x, b.y, b.x AS q, c.x AS o, b.v AS w FROM a, b, c WHERE {}) WHERE x = y AND q = o",
    "numbered": "SELECT w FROM (SELECT a.x, b.y, b.x AS q, c.x AS o, row_number() OVER (PARTITION BY a.x, b.y, b.x, c.x ORDER BY b.v) "
    "AS w FROM a, b, c WHERE {}) WHERE x = y AND q = o AND w < 3",
    "grouped": "SELECT w FROM (SELECT a.x, b.y, b.x AS q, c.x AS o, count(*) AS w FROM a, b, c WHERE {} GROUP BY ALL) WHERE x = y AND q = o",
    "left": "SELECT a.v AS w FROM a CROSS JOIN b JOIN c ON b.x = c.x LEFT JOIN d ON d.y = c.y WHERE {} AND a.x = b.y",
    "correlated": "SELECT e.v FROM e WHERE EXISTS (SELECT 1 FROM a, b, c WHERE {} AND a.x = b.y AND b.x = c.x AND c.y = e.y)",
    "scalar": "SELECT (SELECT max(a.v) AS m FROM a, b, c WHERE {} AND a.x = b.y AND b.x = c.x AND c.y > e.y) AS w FROM e",
    "except": "SELECT * FROM (SELECT a.x, b.y, b.x AS q, c.x AS o FROM a, b, c WHERE {} EXCEPT SELECT x, y, z, v FROM s) WHERE x = y AND q = o",
}


def plans(sql: str) -> tuple[Node, Node]:
    """The plan as it is lowered, and as it is optimized."""
    count = 2 if re.match("SELECT (a.v|b.z), ", sql) else 4 if "SELECT * FROM (" in sql and "EXCEPT" in sql else 1
    output = Schema(tuple(Column(f"o{i}", INTEGER) for i in range(count)))
    query = lower(parsed(sql), INPUTS, output, _analyze)
    plan = optimize(query.plan)
    assert not any(isinstance(node, Fallback) for node in each_once(plan)), explain(plan)
    return query.plan, plan


def _analyze(sql: str, schemas: tuple[Schema, ...]) -> Schema:
    """Spark is asked for names and types of set operations only, whose columns are all of one type here."""
    if "EXCEPT" in sql:
        return COLUMNS
    raise UnsupportedSQL("no types without Spark")


@pytest.mark.parametrize("place", FROM)
@pytest.mark.parametrize("subquery", SUBQUERIES)
def test_no_cross_product_is_left(place: str, subquery: str) -> None:

    lowered, plan = plans(FROM[place].format(SUBQUERIES[subquery]))
    assert not untied(plan, lowered), explain(plan)


def test_the_guard_sees_a_cross_product() -> None:
    lowered, _ = plans(FROM["where"].format(IN))
    assert untied(lowered, lowered)


def test_a_join_of_what_nothing_ties_stays_one() -> None:
    lowered, plan = plans("SELECT a.v FROM a, b WHERE a.x > b.x AND a.y = 1")
    assert not untied(plan, lowered)
    assert [len(components(node)) for node in each_once(plan) if isinstance(node, Join)] == [2]


def test_conjuncts_of_one_relation_keep_their_order() -> None:
    _, plan = plans(
        "SELECT a.v FROM (SELECT * FROM a WHERE x <> 0 AND 6 / x > 1) a, b WHERE a.y = b.y AND a.v / (6 / a.x - 1) > 2"
    )
    filters = [node.predicate.sql for node in each_once(plan) if isinstance(node, Filter)]
    assert filters == ["c1 <> 0", "6 / c1 > 1", "c4 / (6 / c1 - 1) > 2"]


@pytest.mark.parametrize(
    ("sql", "operator"),
    [
        ("SELECT a.v FROM a LEFT JOIN b ON true WHERE a.x = b.x", "Join on"),
        ("SELECT a.v FROM a LEFT JOIN b ON a.v < b.v WHERE a.x = b.x", "Join on"),
        ("SELECT a.v FROM a FULL JOIN b ON true WHERE a.x = b.x", "Join on"),
        ("SELECT a.v FROM a LEFT JOIN b ON true WHERE a.x <=> b.x", "LeftJoin on"),
        ("SELECT a.v FROM a LEFT JOIN b ON true WHERE a.x = coalesce(b.x, 1)", "LeftJoin on"),
        ("SELECT a.v FROM a LEFT JOIN b ON a.y = b.y WHERE a.x = b.x", "LeftJoin on"),
        ("SELECT a.v FROM a FULL JOIN b ON true WHERE coalesce(a.x, 1) = b.x", "FullJoin on"),
    ],
)
def test_an_outer_join_that_an_equality_ties_is_an_inner_one(sql: str, operator: str) -> None:
    _, plan = plans(sql)
    assert f"  {operator}" in explain(plan), explain(plan)
