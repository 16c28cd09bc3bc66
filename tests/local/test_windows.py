"""Window functions on the driver give what Spark gives, and its types."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, FLOAT, INTEGER, LONG, SHORT, TIMESTAMP_NTZ, parse
from dbt_incremental_dd.local.table import Table, normalized
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.local.windows import with_windows
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.local.test_expressions import SMALL, table
from tests.local.test_floats import VALUES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("c1", "c2", "c3", "c4", "c5", "c6", "c8", "n")
WHOLE_ORDER = ", ".join(f"{name} {direction}" for name, direction in zip(COLUMNS, ["", "DESC"] * 4, strict=True))
CALLS = (
    *("row_number()", "rank()", "dense_rank()", "count(*)", "count(c6)", "sum(c1)", "sum(c4)", "sum(c5)", "min(c6)"),
    *("max(c8)", "max(c4)", "min(c2)", "lag(c4)", "lead(c6, 2)", "lag(c9)", "first_value(c1)", "last_value(c8)"),
    *("sum(c1 + c3)", "max(upper(c6))", "sum(CASE WHEN c9 THEN c4 END)", "count(c1 + c2)"),
    *(
        "avg(c1)",
        "avg(c4)",
        "avg(c5)",
        "mean(c2)",
        "avg(CASE WHEN c9 THEN c3 END)",
        "lag(c1, 2, 0)",
        "lag(c2, 1, -3)",
        "lead(c2, 1, CAST(5 AS BIGINT))",
    ),
    *("ntile(7)", "ntile(200)", "percent_rank()", "cume_dist()", "nth_value(c6, 3)", "lag(c4, 2) IGNORE NULLS"),
    *("last_value(c6, true)", "first_value(c1) IGNORE NULLS", "last(c4, false)", "first(c8) RESPECT NULLS"),
    *(
        "lead(c1, 1, -9) IGNORE NULLS",
        "nth_value(c2, 2) IGNORE NULLS",
        "lag(c6, 0)",
        "last(c1 + c3) IGNORE NULLS",
        "max(c9)",
    ),
)
FRAMELESS = ("row_", "rank", "dens", "lag(", "lead", "ntil", "perc", "cume")
OVER = (
    f"PARTITION BY c7 ORDER BY {WHOLE_ORDER}",
    f"PARTITION BY c7, c9 ORDER BY {WHOLE_ORDER}",
    f"ORDER BY {WHOLE_ORDER}",
    f"PARTITION BY c7 ORDER BY {WHOLE_ORDER} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    f"PARTITION BY c7 ORDER BY {WHOLE_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)
OF_PEERS = (
    "rank()",
    "percent_rank()",
    "cume_dist()",
    "dense_rank()",
    "sum(c1)",
    "avg(c1)",
    "sum(c4)",
    "count(*)",
    "max(c6)",
    "min(c8)",
)


def _given() -> Table:
    made = table(random.Random(5), 80, SMALL).append_column("n", [list(range(80))])
    types = [(name, kind) for name, (kind, _) in SMALL.items()]
    return Table(made, Schema((*(Column(name, parse(kind)) for name, kind in types), Column("n", LONG))))


@pytest.mark.parametrize("over", OVER)
def test_it_is_spark_s_answer(spark: SparkSession, over: str) -> None:
    _compare(
        spark, _given(), [f"{call} OVER ({over})" for call in CALLS if "ROWS" not in over or call[:4] not in FRAMELESS]
    )


@pytest.mark.parametrize(
    "over",
    [
        "PARTITION BY c7 ORDER BY c1",
        "PARTITION BY c9 ORDER BY c8 DESC NULLS FIRST, c6",
        "PARTITION BY c1",
        "ORDER BY c9 DESC",
    ],
)
def test_peers_are_spark_s(spark: SparkSession, over: str) -> None:
    _compare(spark, _given(), [f"{call} OVER ({over})" for call in OF_PEERS if "ORDER" in over or "(c" in call])


@pytest.mark.parametrize(
    "over",
    [
        "PARTITION BY c7 ORDER BY c1 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
        "PARTITION BY c9 ORDER BY c2 DESC RANGE BETWEEN 5 PRECEDING AND 3 FOLLOWING",
        "ORDER BY c3 DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 7 PRECEDING",
        "ORDER BY n RANGE BETWEEN 2 FOLLOWING AND 4 FOLLOWING",
        "ORDER BY c8 RANGE BETWEEN INTERVAL 364 DAYS PRECEDING AND CURRENT ROW",
        "PARTITION BY c7 ORDER BY c8 NULLS LAST RANGE BETWEEN 20000 PRECEDING AND 1 FOLLOWING",
        "ORDER BY c11 RANGE BETWEEN INTERVAL '90' MINUTES PRECEDING AND INTERVAL 200 MINUTES FOLLOWING",
        "ORDER BY c1 RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "ORDER BY c6, c1 RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
    ],
)
def test_ranges_are_spark_s(spark: SparkSession, over: str) -> None:
    calls = ("sum(c1)", "avg(c1)", "sum(c4)", "count(*)", "max(c6)", "min(c8)")
    _compare(spark, _given(), [f"{call} OVER ({over})" for call in calls])


@pytest.mark.parametrize("days", [0, 3, 40])
def test_ranges_of_moments_without_a_zone_are_spark_s(spark: SparkSession, days: int) -> None:
    given = _given()
    moments = [datetime(2024, 3, 1) + timedelta(days=n * 7 % 60, hours=n % 3) if n % 9 else None for n in range(80)]
    columns = given.arrow.append_column("moment", pa.array(moments, pa.timestamp("us")))
    table = Table(columns, Schema((*given.schema.columns, Column("moment", TIMESTAMP_NTZ))))
    over = f"PARTITION BY c9 ORDER BY moment RANGE BETWEEN INTERVAL '{days}' DAYS PRECEDING AND INTERVAL '2' DAYS FOLLOWING"
    _compare(spark, table, [f"{call} OVER ({over})" for call in ("sum(c1)", "count(*)", "min(n)")])


@pytest.mark.parametrize(
    ("frame", "is_here"), [("1 PRECEDING AND CURRENT ROW", True), ("CURRENT ROW AND 8 FOLLOWING", False)]
)
def test_ends_beyond_the_type_are_left_to_it(spark: SparkSession, frame: str, is_here: bool) -> None:
    rows = pa.table({"c": pa.array([2**15 - 8, 0, None], pa.int16())})
    given, call = Table(rows, Schema((Column("c", SHORT),))), f"sum(c) OVER (ORDER BY c RANGE BETWEEN {frame})"
    if is_here:
        _compare(spark, given, [call])
        return
    with pytest.raises(NotExact):
        with_windows(given, [("w", Expr(call))], SparkConstants(LazySession.of(spark)))


@pytest.mark.parametrize(
    "over",
    ["PARTITION BY x ORDER BY n", "ORDER BY x DESC NULLS FIRST, n", "PARTITION BY n % 5 ORDER BY y", "PARTITION BY y"],
)
def test_floats_are_spark_s(spark: SparkSession, over: str) -> None:
    rng = random.Random(7)
    columns = {
        "x": pa.array([rng.choice(VALUES) for _ in range(70)], pa.float64()),
        "y": pa.array([rng.choice(VALUES[:-1]) for _ in range(70)], pa.float32()),
        "n": pa.array(range(70), pa.int32()),
    }
    schema = Schema((Column("x", DOUBLE), Column("y", FLOAT), Column("n", INTEGER)))
    calls = [
        *("count(x)", "min(x)", "max(y)", "max(x)", "sum(n)"),
        *(("rank()", "dense_rank()") if "ORDER" in over else ()),
    ]
    calls += [*("lag(x)", "first_value(y)", "nth_value(x, 2)")] if over.endswith(" n") else []
    _compare(spark, Table(pa.table(columns), schema), [f"{call} OVER ({over})" for call in calls])


def _compare(spark: SparkSession, given: Table, calls: list[str]) -> None:
    found = with_windows(
        given, [(f"w{i}", Expr(call)) for i, call in enumerate(calls)], SparkConstants(LazySession.of(spark))
    )
    answer = local_frame(spark, given).selectExpr("*", *(f"{call} AS w{i}" for i, call in enumerate(calls)))
    assert [column.type for column in found.schema] == [column.type for column in schema_of(answer.schema)]
    assert Counter(_shown(found.arrow)) == Counter(_shown(answer.toArrow()))


def _shown(rows: pa.Table) -> list[str]:
    """Each row; of zeros, which are equal, a minimum may be either."""
    return [str(row) for row in normalized(rows).to_pylist()]


@pytest.mark.parametrize(
    "call",
    [
        *("avg(CAST(c4 AS DECIMAL(20,2)))", "collect_list(c1)", "count(DISTINCT c1)", "lag(c3, 1, 0)", "lag(c1, -1)"),
        *("sum(c1) FILTER (WHERE c9)", "ntile(c1)", "lag(soundex(c6))"),
    ],
)
def test_the_others_are_left_to_it(spark: SparkSession, call: str) -> None:
    with pytest.raises(NotExact):
        with_windows(_given(), [("w", Expr(f"{call} OVER (ORDER BY n)"))], SparkConstants(LazySession.of(spark)))


@pytest.mark.parametrize(
    "over",
    [
        "ORDER BY c10 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ORDER BY c4 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ORDER BY c8 RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW",
        "ORDER BY c8 RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW",
        "ORDER BY c11 RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW",
        "ORDER BY c11 RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND INTERVAL 5 MINUTES FOLLOWING",
    ],
)
def test_orders_that_differ_are_left_to_it(spark: SparkSession, over: str) -> None:
    with pytest.raises(NotExact):
        with_windows(_given(), [("w", Expr(f"sum(c1) OVER ({over})"))], SparkConstants(LazySession.of(spark)))
