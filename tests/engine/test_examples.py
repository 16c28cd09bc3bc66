"""What becomes of each of Spark's own examples in a model over a table: kept by deltas, recomputed, or refused."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.engine.examples import examples, expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_QUERY = "none to Spark over a table"
DDL = "k INT, v BIGINT, s STRING"
_OVER_VALUES = re.compile(r"SELECT\s+(.*?)\s+FROM\s+(VALUES\b.*\bAS\s+\w+\s*\([^()]*\))", re.DOTALL | re.IGNORECASE)


@pytest.mark.slow
def test_what_becomes_of_sparks_examples(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the figures of docs/sql.md. Whatever is not maintained has a reason."""
    found = examples(spark)
    schema = schema_of(spark.createDataFrame([], DDL).schema)
    spark.createDataFrame([], DDL).createOrReplaceTempView("examples_t")
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for example in dict.fromkeys(text for queries in found.values() for text in queries):
        kind, reason = _outcome(spark, _over_table(example), {"t": Input("t", schema)})
        assert reason or kind in ("maintained", NO_QUERY), example
        counts[kind] += 1
        if reason:
            reasons[kind, reason] += 1
    with capsys.disabled():
        print(f"\nSpark {spark.version}: {len(found)} functions, {counts.total()} examples, {dict(counts)}")
        for (kind, reason), count in reasons.most_common(40):
            print(f"{count:5} {kind}: {reason}")
    assert counts["maintained"] > counts["recomputed"] + counts["refused"]


def _over_table(example: str) -> str:
    """The example beside a table's column; an aggregate of VALUES by group of that column."""
    alone = expression(example)
    if alone:
        return f"SELECT {alone}\n AS x, k FROM t"
    of_values = _OVER_VALUES.fullmatch(example)
    if of_values and " OVER " not in example.upper():
        return f"SELECT k, {of_values[1]} AS x FROM {of_values[2]} CROSS JOIN t GROUP BY k"
    return f"SELECT t.k, e.* FROM ({example}\n) AS e CROSS JOIN t"


def _outcome(spark: SparkSession, sql: str, inputs: dict[str, Input]) -> tuple[str, str]:
    try:
        fallbacks = compile_model(LazySession.of(spark), "m", parsed(sql), inputs).plan.fallbacks
    except UnsupportedSQL as refused:
        if not _is_query(spark, sql):
            return NO_QUERY, ""
        return "refused", _general(refused.construct)
    return ("recomputed", _general(fallbacks[0])) if fallbacks else ("maintained", "")


def _is_query(spark: SparkSession, sql: str) -> bool:
    try:
        return bool(spark.sql(re.sub(r"\bt\b(?=\s*$|\s+GROUP BY k$)", "examples_t AS t", sql)).columns)
    except (PySparkException, Py4JJavaError):
        return False


def _general(reason: str) -> str:
    """Without the names and places of one query."""
    return re.sub(r"\s*\(line.*?\)|'[^']*'", "", reason)[:90]
