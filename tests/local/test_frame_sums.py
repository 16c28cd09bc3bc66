"""Sums and averages of doubles over windows: Spark's to the last bit."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, FLOAT, INTEGER, LONG
from dbt_incremental_dd.local import frame_sums
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.local.windows import with_windows
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VALUES = [0.1, 0.2, 0.7, -1.5, 1e16, 3.0, 1e-9, -0.0, None]
OVER = [
    "",
    "PARTITION BY g",
    "ORDER BY n",
    "PARTITION BY k ORDER BY n",
    "PARTITION BY k ORDER BY n DESC",
    "PARTITION BY k ORDER BY g, n",
    "PARTITION BY k ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "PARTITION BY k ORDER BY n ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "PARTITION BY k ORDER BY n ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING",
    "PARTITION BY k ORDER BY n ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "PARTITION BY k ORDER BY n RANGE BETWEEN 9 PRECEDING AND CURRENT ROW",
    "PARTITION BY k, g ORDER BY n DESC RANGE BETWEEN 5 FOLLOWING AND 40 FOLLOWING",
]


def _rows(values: list[float | None], count: int = 90) -> Table:
    rng = random.Random(8)
    columns = {
        "n": pa.array(rng.sample(range(count), count), pa.int64()),
        "k": pa.array([rng.choice([1, 2, None]) for _ in range(count)], pa.int32()),
        "g": pa.array([rng.choice([1, 2, 3]) for _ in range(count)], pa.int32()),
        "x": pa.array([rng.choice(values) for _ in range(count)], pa.float64()),
        "y": pa.array([rng.choice([0.1, 2.5, None]) for _ in range(count)], pa.float32()),
    }
    types = {"n": LONG, "k": INTEGER, "g": INTEGER, "x": DOUBLE, "y": FLOAT}
    return Table(pa.table(columns), Schema(tuple(Column(name, types[name]) for name in columns)))


def _compare(spark: SparkSession, rows: Table, over: str) -> None:
    calls = [f"{call} OVER ({over})" for call in ("sum(x)", "avg(x)", "sum(y)", "mean(y)", "sum(x * 2)")]
    functions = [(f"w{number}", Expr(call)) for number, call in enumerate(calls)]
    found = with_windows(rows, functions, SparkConstants(LazySession.of(spark))).arrow.to_pylist()
    frame = local_frame(spark, rows).selectExpr("*", *(f"{e.sql} AS {name}" for name, e in functions))
    wanted = frame.toArrow().to_pylist()
    assert {r["n"]: repr(r) for r in found} == {r["n"]: repr(r) for r in wanted}


@pytest.mark.parametrize("over", OVER)
def test_it_is_spark_s_answer(spark: SparkSession, over: str) -> None:
    _compare(spark, _rows(_VALUES), over)


def test_no_numbers_are_spark_s(spark: SparkSession) -> None:
    for values in ([math.nan, 1.0, None], [math.inf, 2.0, -math.inf], [None], [1e308, -1e308]):
        for over in (OVER[3], OVER[7]):
            _compare(spark, _rows(values), over)


def test_no_rows(spark: SparkSession) -> None:
    _compare(spark, _rows(_VALUES, 0), OVER[3])


def test_many_long_frames_are_left_to_it(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.setattr(frame_sums, "_MOST_STEPS", 100)
    function = ("w", Expr("sum(x) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"))
    with pytest.raises(NotExact):
        with_windows(_rows(_VALUES), [function], SparkConstants(LazySession.of(spark)))
