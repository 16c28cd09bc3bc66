"""A query that compiles without Spark is one that Spark accepts, with the same columns: those of ``meaning/*.sql``, and
the same with mistakes in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, ParseException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.dialect import VerbatimSpark
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Get
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.render.types import DriverTypes, PlanTypes
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from tests.frontend.test_meaning import cases, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tables"]
_SHARE = 0.3
"""Of all queries so many need no Spark, at least."""
_WORDS = (
    *("k", "v", "s", "d", "ts", "b", "id", "zz", "t", "u", "w", "sum", "upper", "nothing", "count", "NULL", "1", "'a'"),
    *("(", ")", ",", "+", "||", "AND", "NOT", "DISTINCT", "*", "GROUP BY", "ORDER BY", "LIMIT", "OVER", "AS", "="),
)


def test_queries(spark: SparkSession, tables: dict[str, Input]) -> None:
    found = [_check(spark, tables, case.sql) for case in cases()]
    assert sum(found) >= _SHARE * len(found)


@pytest.mark.parametrize("part", range(4))
def test_mistakes(spark: SparkSession, tables: dict[str, Input], part: int) -> None:
    rng = random.Random(part)
    found = [_check(spark, tables, sql) for case in cases()[part::4] for sql in _mistaken(case.sql, rng, 6)]
    assert any(found) and not all(found)


@dataclass(frozen=True)
class _Ordered(Node):
    """An operator that nothing in ``render`` knows."""

    input: Node
    by: Expr

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.by,)


@pytest.mark.parametrize(("sql", "is_known"), [("c1 + 1", True), ("upper(c1) + c1", False), ("nothing(c1)", False)])
def test_what_an_operator_evaluates_has_a_type(spark: SparkSession, sql: str, *, is_known: bool) -> None:
    inputs = {"t": Schema((Column("k", INTEGER),))}
    node = _Ordered(Get("t", (("c1", "k"),)), Expr(sql))
    with nullcontext() if is_known else pytest.raises(NotExact):
        assert DriverTypes(LazySession.of(spark), inputs).of(node) == Schema((Column("c1", INTEGER),))


def _check(spark: SparkSession, tables: dict[str, Input], sql: str) -> bool:
    """Whether the query compiles without Spark; then Spark has to say the same."""
    try:
        inputs = {relation.key: tables[relation.key] for relation in parsed(sql).relations}
    except (UnsupportedSQL, KeyError):
        return False
    compiled = compiled_on_driver(LazySession.of(spark), "m", parsed(sql), inputs)
    if compiled is None:
        return False
    assert _by_spark(spark, sql, inputs) == compiled[1], sql
    return True


def _by_spark(spark: SparkSession, sql: str, inputs: dict[str, Input]) -> Schema | str:
    text, keys = template(parsed(sql), inputs)
    try:
        return PlanTypes(LazySession.of(spark), {}).of_sql(text, [inputs[key].schema for key in keys])
    except (AnalysisException, ParseException) as error:
        return str(error).splitlines()[0]


def _mistaken(sql: str, rng: random.Random, count: int) -> Iterator[str]:
    """The query with a word more, less, or another one."""
    tokens = VerbatimSpark().tokenize(sql)
    for _ in range(count):
        token = rng.choice(tokens)
        kind, before, after = rng.randrange(4), sql[: token.start], sql[token.end + 1 :]
        own, other = sql[token.start : token.end + 1], rng.choice(tokens)
        word = rng.choice((*_WORDS, sql[other.start : other.end + 1]))
        yield (
            f"{before}{after}",
            f"{before} {word} {after}",
            f"{before} {word} {own}{after}",
            f"{before}{own} {own}{after}",
        )[kind]
