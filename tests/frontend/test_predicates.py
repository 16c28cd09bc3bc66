"""What is no boolean where a condition is wanted: Spark's value, or refused as Spark refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.logical.nodes import Fallback
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.render.types import PlanTypes
from dbt_incremental_dd.runtime.compile import _query
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.frontend.interpreter import Interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = "k INT, v INT, d DECIMAL(4,2), s STRING, f DOUBLE, b BOOLEAN"
ROWS = "(1, 0, 0.00D, 'true', 0D, true), (1, 2, 1.50D, 'no', 2D, false), (2, 0, 0D, 'f', 0D, NULL), (3, NULL, NULL, NULL, NULL, true)"
VALUES = ["v", "s", "b"]
GROUPED = [
    "sum(v)",
    "max(d)",
    "max(s)",
    "max(f)",
    "bool_or(b)",
    "k",
    "(k)",
    "0",
    "'no'",
    "NULL",
    "count(*) - 1",
    "-sum(v)",
]
GROUPED += [
    "CASE WHEN k > 1 THEN 1 ELSE 0 END",
    "NOT bool_or(b)",
    "sum(v) AND true",
    "sum(v) > 1 OR k",
    "k IS NULL",
    "k = 1",
]
POSITIONS = {
    "where": "SELECT k FROM t WHERE {}",
    "where and": "SELECT k FROM t WHERE {} AND k > 1",
    "where or": "SELECT k FROM t WHERE k > 2 OR {}",
    "where factored": "SELECT k FROM t WHERE ({0} AND k > 1) OR ({0} AND k < 1)",
    "where not": "SELECT k FROM t WHERE NOT {}",
    "on": "SELECT t.k FROM t JOIN (SELECT k AS l FROM t) u ON {}",
    "on and": "SELECT t.k FROM t LEFT JOIN (SELECT k AS l FROM t) u ON {} AND k = l",
    "filter": "SELECT count(*) FILTER (WHERE {}) AS n FROM t",
    "case": "SELECT CASE WHEN {} THEN 1 ELSE 2 END AS c FROM t",
    "if": "SELECT if({}, 1, 2) AS c FROM t",
    "not": "SELECT NOT {} AS c FROM t",
    "and": "SELECT ({} AND b) AS c FROM t",
    "qualify": "SELECT k, row_number() OVER (ORDER BY k, v) AS n FROM t QUALIFY {}",
}
HAVING = {
    "having": "SELECT k FROM t GROUP BY k HAVING {}",
    "having global": "SELECT count(*) AS n FROM t HAVING {}",
    "having with a subquery": "SELECT k FROM t GROUP BY k HAVING if(k IN (SELECT v FROM t), {}, NULL)",
}
WINDOWED = [
    "row_number() OVER (ORDER BY k, v) - 1",
    "sum(v) OVER (PARTITION BY k)",
    "n",
    "n - 1",
    "lag(s) OVER (ORDER BY k, v)",
]


def cases() -> Iterator[tuple[str, str]]:
    """Positions with values, by name."""
    for position, sql in POSITIONS.items():
        yield from ((f"{position}: {value}", sql.format(value)) for value in VALUES)
    for position, sql in HAVING.items():
        grouped = GROUPED if position == "having" else ["sum(v)", "max(s)", "bool_or(b)"]
        yield from ((f"{position}: {value}", sql.format(value)) for value in grouped)
    yield from ((f"qualify: {value}", POSITIONS["qualify"].format(value)) for value in WINDOWED)


def test_conditions_are_cast_or_refused_as_by_spark(spark: SparkSession) -> None:
    spark.sql(f"SELECT * FROM VALUES {ROWS} AS t(k, v, d, s, f, b)").selectExpr(
        "k", "v", "CAST(d AS DECIMAL(4,2)) AS d", "s", "f", "b"
    ).createOrReplaceTempView("t")
    inputs = {"t": Input("t", schema_of(spark.table("t").schema))}
    types = PlanTypes(LazySession.of(spark), {"t": inputs["t"].schema})
    wrong, answered = [], 0
    for name, sql in cases():
        wanted, found = _answer(spark, sql), _ours(spark, types, sql, inputs)
        answered += not isinstance(wanted, str)
        if wanted != found:
            wrong.append(f"{name}: Spark {wanted}, here {found}")
    assert not wrong, "\n".join(wrong)
    assert answered > 20


def _answer(spark: SparkSession, sql: str) -> list[str] | str:
    try:
        return sorted(map(repr, spark.sql(sql).collect()))
    except AnalysisException:
        return "refused"
    except Exception as error:  # whatever Spark raises when it runs
        return _reason(error)


def _ours(spark: SparkSession, types: PlanTypes, sql: str, inputs: dict[str, Input]) -> list[str] | str:
    try:
        query, _ = _query(types, "m", parsed(sql), inputs)
    except UnsupportedSQL:
        return "refused"
    if any(isinstance(node, Fallback) for node in query.plan.walk()):
        return f"recomputed: {[node.reason for node in query.plan.walk() if isinstance(node, Fallback)]}"
    try:
        return sorted(map(repr, Interpreter(spark).frame(query.plan).toDF(*query.names).collect()))
    except Exception as error:  # whatever Spark raises when it runs
        return _reason(error)


def _reason(error: Exception) -> str:
    return next((word for word in ("CAST_INVALID_INPUT", "DIVIDE_BY_ZERO") if word in str(error)), repr(error)[:80])
