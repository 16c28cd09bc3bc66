"""Doubles as texts, and what is read of these: Spark's own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import DOUBLE
from dbt_incremental_dd.local.double_text import text, written
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EDGES = [0.0, -0.0, 1e-3, 9.999e-4, 9999999.0, 1e7, 12345678.9, 2.0**53 - 1, 1.005, 2.675, -1.785, 1e-30, 0.1 + 0.2]


def _numbers() -> list[float]:
    rng = random.Random(3)
    short = [rng.randint(-(10**9), 10**9) / 10 ** rng.randint(0, 6) for _ in range(2_000)]
    ties = [(2 * rng.randint(-(10**6), 10**6) + 1) / 200 for _ in range(500)]
    long = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-20, 15) for _ in range(2_000)]
    return [number for number in (*_EDGES, *short, *ties, *long) if abs(number) < 2**53]


@pytest.mark.parametrize(
    "sql",
    [
        "CAST(x AS STRING)",
        "round(x, 2)",
        "round(x)",
        "round(x, 7)",
        "concat('<', x, '>')",
        "x || ''",
        "CAST(x * 1e-9 AS DECIMAL(20, 12))",
        "CAST(CASE WHEN abs(x) < 1e7 THEN x END AS DECIMAL(9, 2))",
        "try_cast(x AS DECIMAL(38, 10))",
    ],
)
def test_they_are_spark_s(spark: SparkSession, sql: str) -> None:
    table = Table(pa.table({"x": _numbers()}), Schema((Column("x", DOUBLE),)))
    found = evaluate(table, Expr(sql), SparkConstants(LazySession.of(spark)))
    wanted = spark.createDataFrame(table.arrow).selectExpr(f"{sql} AS v").toArrow()["v"]
    assert list(map(repr, found.data.to_pylist())) == list(map(repr, wanted.to_pylist()))


def test_no_numbers() -> None:
    assert [text(float(name)) for name in ("nan", "inf", "-inf")] == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize(
    "number", [2.0**53, -1e23, 5e-324, -1e-310, 2.0**-24, -(2.0**-1000), float("nan"), float("inf")]
)
def test_what_depends_on_java_s_release(number: float) -> None:
    with pytest.raises(ValueError, match=r"\d|nan|inf"):
        written(number)


def test_what_does_not_fit_is_left_to_spark(spark: SparkSession) -> None:
    table = Table(pa.table({"x": [99.995]}), Schema((Column("x", DOUBLE),)))
    with pytest.raises(NotExact):
        evaluate(table, Expr("CAST(x AS DECIMAL(4, 2))"), SparkConstants(LazySession.of(spark)))
