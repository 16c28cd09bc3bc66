"""What the driver leaves to Spark of generators; what it computes is compared in ``relation/test_engines.py``."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import DATE, LONG, STRING
from dbt_incremental_dd.local.generators import generated
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import Literals
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((Column("a", LONG), Column("b", LONG), Column("d", DATE), Column("s", STRING)))


@pytest.mark.parametrize(
    "call",
    [
        *("explode(sequence(a, b))", "explode(sequence(b, a))", "explode(sequence(a, b, -1))"),
        *("explode(sequence(a, a, 0))", "explode(sequence(d, d, INTERVAL '1' HOUR))", "explode(sequence(d, d, a))"),
        *("explode(split(s, '[.,]'))", "explode(split(s, ',', 2))", "explode(split(s, s))"),
        *("explode_outer(sequence(a, a))", "stack(2, a, s)", "stack(0, a)"),
    ],
)
def test_it_is_left_to_spark(spark: SparkSession, call: str) -> None:
    day = datetime.date(2024, 1, 1)
    arrow = pa.table({"a": [-(1 << 63)], "b": [(1 << 63) - 1], "d": pa.array([day], pa.date32()), "s": ["a.b"]})
    constants = Literals(LazySession.of(spark))
    with pytest.raises(NotExact):
        generated(Table(arrow, SCHEMA), Expr(call), ["e"], constants, outer=False)


@pytest.mark.parametrize("months", [1, 3, 12, -1, -5])
def test_months_are_counted_from_the_first_day(spark: SparkSession, months: int) -> None:
    """Not from one that has no such day: 31 January, 29 February, 31 March."""
    ends = [(datetime.date(2024, 1, 31), datetime.date(2025, 3, 30)), (datetime.date(2023, 5, 30),) * 2]
    ends = [pair[::-1] if months < 0 else pair for pair in ends]
    arrow = pa.table({"a": [1, 2], "d": [a for a, _ in ends], "e": [b for _, b in ends]})
    table = Table(arrow, Schema((Column("a", LONG), Column("d", DATE), Column("e", DATE))))
    call = f"explode(sequence(d, e, INTERVAL {months} MONTH))"
    found = generated(table, Expr(call), ["m"], Literals(LazySession.of(spark)), outer=False)
    wanted = local_frame(spark, table).selectExpr("*", f"{call} AS m").toArrow()
    assert found.arrow.select(["a", "m"]).to_pylist() == wanted.select(["a", "m"]).to_pylist()
