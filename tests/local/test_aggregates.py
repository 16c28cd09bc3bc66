"""Aggregates on the driver: values and types are those of Spark, over NULLs, duplicates, edge values and no rows."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.local.aggregates import NAMES, aggregated
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.trace.spark_reader import schema_of
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
from dbt_incremental_dd.local.table import Table

_DDL = (
    "k INT, g STRING, i INT, b BIGINT, d DECIMAL(12,2), w DECIMAL(20,3), x DOUBLE, y FLOAT, s STRING, t BOOLEAN, o DATE"
)
_EVERYWHERE = [
    "count(*)",
    "count(x, s)",
    "count(DISTINCT i)",
    "count(DISTINCT s, i)",
    "count_if(i > 2)",
    "sum(i)",
    "sum(DISTINCT i)",
    "sum(d)",
    "sum(w)",
    "sum(x)",
    "sum(y)",
    "sum(x) FILTER (WHERE i > 1)",
    "sum(i * x)",
    "avg(i)",
    "avg(d)",
    "avg(x)",
    "mean(y)",
    "min(s)",
    "max(x)",
    "min(y)",
    "max(o)",
    "max(DISTINCT d)",
    "bool_and(t)",
    "every(t)",
    "bool_or(t)",
    "some(t)",
    "stddev(x)",
    "stddev_samp(i)",
    "std(d)",
    "stddev_pop(x)",
    "variance(x)",
    "var_samp(d)",
    "var_pop(i)",
    "median(i)",
    "median(d)",
    "percentile(i, 0.25)",
    "percentile(d, 0.9)",
    "percentile(b, 1)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY i)",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY d DESC)",
    "first(s)",
    "first(i, true)",
    "first_value(d) IGNORE NULLS",
    "any_value(o)",
    "last(x)",
    "last_value(s, true)",
    "min_by(x, b)",
    "max_by(i, w)",
    "max_by(i, b) FILTER (WHERE t)",
    *("approx_count_distinct(i)", "approx_count_distinct(s)", "approx_count_distinct(d)", "approx_count_distinct(o)"),
    *("percentile_approx(i, 0.5)", "approx_percentile(d, 0.9)", "percentile_approx(x, 0.25)"),
    *(
        "percentile_approx(o, 0.5)",
        "percentile_approx(b, 1)",
        "percentile_approx(b, 0)",
        "percentile_approx(i, 0.7, 500)",
    ),
    *("collect_set(i)", "collect_set(s)", "collect_set(o)", "collect_set(i % 3)"),
    "array_agg(d)",
    "collect_list(s)",
    "collect_list(named_struct('i', i, 's', s))",
    "max(named_struct('i', i, 'b', b))",
    "min_by(named_struct('i', i, 's', s), b)",
    "listagg(s, ',') WITHIN GROUP (ORDER BY b)",
    "string_agg(s, '; ')",
    "listagg(s)",
]
_SETS = Schema((Column("s", STRING), Column("n", LONG)))
_TEXTS = ["a", "bc", "", "ä", "zz", None]
_FLOATS = [0.1, 0.2, 0.3, -1.5, 1e16, 3.0, 1e-9, None, math.nan, math.inf]


def _rows(count: int, seed: int, floats: list[Any]) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    return [
        (
            rng.randint(0, 4),
            rng.choice(["u", "v"]),
            maybe(rng.randint(-3, 5)),
            n * 10,
            maybe(Decimal(rng.randint(-10_000, 10_000)) / 100),
            maybe(Decimal(rng.randint(-(10**15), 10**15)) / 1000),
            rng.choice(floats),
            rng.choice([0.5, 0.25, 1.1, None]),
            rng.choice(_TEXTS),
            maybe(rng.random() < 0.5),
            None,
        )
        for n in range(count)
    ]


def _made(spark: SparkSession, count: int, floats: list[Any], seed: int = 3) -> DataFrame:
    rows = _rows(count, seed, floats)
    frame = spark.createDataFrame(rows, _DDL).withColumn("o", _day())
    return frame.coalesce(1)


def _day() -> Any:
    from pyspark.sql import functions as F

    return F.expr("date_add(DATE '2024-01-01', i)")


def _answers(spark: SparkSession, frame: DataFrame, keys: list[str], calls: list[str]) -> dict[str, Any]:
    """Of each call: rows by Spark and by the driver, and their types; what the driver leaves to Spark is missing."""
    local = Table(to_arrow(frame), schema_of(frame.schema))
    constants = SparkConstants(LazySession.of(spark))
    # Spark reads the same rows, in the same order and in one partition.
    given = spark.createDataFrame(local.arrow, frame.schema).coalesce(1)
    wanted = given.groupBy(*keys).agg(*(_expr(f"{call} AS c{n}") for n, call in enumerate(calls)))
    answers = {}
    for n, call in enumerate(calls):
        try:
            found = aggregated(local, keys, [(f"c{n}", Expr(call))], constants)
        except NotExact:
            continue
        theirs = wanted.select(*keys, f"c{n}")
        assert found.schema == schema_of(theirs.schema), call
        answers[call] = (_sorted(to_arrow(theirs).to_pylist()), _sorted(found.arrow.to_pylist()))
    return answers


def _expr(text: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(text)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in rows)


@pytest.mark.parametrize("keys", [[], ["k"], ["k", "g"], ["g", "i"], ["x"]], ids=", ".join)
def test_random_rows(spark: SparkSession, keys: list[str]) -> None:
    """By a single key that may be NULL Spark may sort its rows in an order that is not theirs."""
    floats = [value for value in _FLOATS if value is None or math.isfinite(value)]
    calls = [
        c
        for c in _EVERYWHERE
        if keys != ["x"] or not c.startswith(("first", "any", "last", "list", "string", "array", "collect"))
    ]
    answers = _answers(spark, _made(spark, 60, floats), keys, calls)
    assert set(answers) == set(calls)
    for call, (theirs, ours) in answers.items():
        assert theirs == ours, call


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rows(spark: SparkSession, count: int) -> None:
    for keys in ([], ["k"]):
        answers = _answers(spark, _made(spark, count, [1.5, None]), keys, _EVERYWHERE)
        assert set(answers) == set(_EVERYWHERE)
        for call, (theirs, ours) in answers.items():
            assert theirs == ours, (count, call)


def test_floats_that_are_no_numbers(spark: SparkSession) -> None:
    calls = [call for call in _EVERYWHERE if "x" in call]
    for seed in range(4):
        answers = _answers(spark, _made(spark, 30, [*_FLOATS, -0.0, -math.inf, 1e308, -1e308], seed), ["k"], calls)
        for call, (theirs, ours) in answers.items():
            assert theirs == ours, call


LEFT_TO_SPARK = [
    "avg(w)",
    "percentile(i, 0.5, 2)",
    "percentile(i, array(0.5))",
    "percentile(x, 0.5) FILTER (WHERE x = 0)",
    "sum(s)",
    "sum(DISTINCT x)",
    "max_by(i, g)",
    "listagg(i, ',')",
    "approx_count_distinct(x)",
    "collect_set(d)",
    "collect_set(x)",
    "approx_count_distinct(i, 0.1)",
    "percentile_approx(w, 0.5)",
    "percentile_approx(i, 0.5, 2)",
    "percentile_approx(i, array(0.5))",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY i)",
    "upper(s)",
    "count(i) IGNORE NULLS",
    "sum(i) RESPECT NULLS",
    "percentile_cont(0.5)",
    "percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY i)",
    "max(i) WITHIN GROUP (ORDER BY i)",
]


@pytest.mark.parametrize("call", LEFT_TO_SPARK)
def test_what_is_left_to_spark(spark: SparkSession, call: str) -> None:
    frame = _made(spark, 20, [-0.0, 0.0])
    table = Table(to_arrow(frame), schema_of(frame.schema))
    with pytest.raises(NotExact):
        aggregated(table, ["k"], [("c", Expr(call))], SparkConstants(LazySession.of(spark)))


def test_distinct_changes_the_order_of_others(spark: SparkSession) -> None:
    frame = _made(spark, 20, [0.1])
    table = Table(to_arrow(frame), schema_of(frame.schema))
    calls = [("a", Expr("sum(x)")), ("b", Expr("count(DISTINCT i)"))]
    with pytest.raises(NotExact):
        aggregated(table, ["k"], calls, SparkConstants(LazySession.of(spark)))


def test_every_aggregate_is_among_these() -> None:
    called = {call.split("(")[0] for call in _EVERYWHERE}
    assert NAMES - called <= {"any"}, "`any` is a keyword of the parser"


def test_sets_are_in_spark_s_order(spark: SparkSession) -> None:
    """Of up to ten values, collected from any number of partitions."""
    rng = random.Random(4)
    for count in range(1, 11):
        texts = ["".join(rng.choices("abcdé€ XYZ09-", k=rng.randint(0, 9))) for _ in range(count)]
        longs = [rng.choice([rng.randint(-9, 99), rng.randint(-(1 << 62), 1 << 62)]) for _ in range(count)]
        rows = list(zip(texts, longs, strict=True)) * 2
        table = Table(pa.table({"s": [s for s, _ in rows], "n": [n for _, n in rows]}), _SETS)
        outputs = [("s", Expr("collect_set(s)")), ("n", Expr("collect_set(n)"))]
        found = aggregated(table, [], outputs, SparkConstants(LazySession.of(spark))).arrow
        for partitions in (1, 3):
            frame = spark.createDataFrame(rows, "s STRING, n BIGINT").repartition(partitions)
            theirs = frame.selectExpr("collect_set(s) AS s", "collect_set(n) AS n")
            assert found.to_pylist() == [row.asDict() for row in theirs.collect()]
