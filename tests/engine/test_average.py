"""Averages of decimals from their sum and count: rounded once, like Spark's own."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core import types
from dbt_incremental_dd.differential.decimals import decimal_average

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _just_below_the_middle(count: int, scale: int) -> Decimal:
    """A sum whose average lies less below the middle between two results than Spark's division can tell."""
    modulus = 2 * 10**4
    middle = pow(count, -1, modulus)  # odd; in halves of the last digit
    cents = (count * middle - 1) // modulus
    return Decimal(cents).scaleb(-scale)


def _cases(scale: int) -> list[tuple[Decimal, int]]:
    rng = random.Random(scale)
    near = [(_just_below_the_middle(count, scale), count) for count in (1_200_003, 7_654_321, 99_999_999)]
    middles = [(Decimal(1).scaleb(-scale), 2 * 10**4), (Decimal(3).scaleb(-scale), 2 * 10**4)]
    others = [(Decimal(rng.randrange(10**14)).scaleb(-scale), rng.randrange(1, 10**8)) for _ in range(40)]
    found = near + middles + others
    return found + [(-total, count) for total, count in found]


@pytest.mark.parametrize(("precision", "scale"), [(18, 2), (12, 2), (18, 0), (10, 5)])
def test_averages_are_rounded_once(spark: SparkSession, precision: int, scale: int) -> None:
    cases = _cases(scale)
    frame = spark.createDataFrame(cases, f"total DECIMAL({precision + 10},{scale}), n BIGINT")
    mean = decimal_average("total", "n", types.Decimal(precision, scale))
    found = frame.selectExpr("total", "n", f"{mean} AS mean").collect()
    last = Decimal(1).scaleb(-scale - 4)
    wrong = [row for row in found if row["mean"] != _exact(row["total"], row["n"], last)]
    assert not wrong


def _exact(total: Decimal, count: int, last: Decimal) -> Decimal:
    from decimal import localcontext

    with localcontext() as context:
        context.prec = 60
        return (total / count).quantize(last, ROUND_HALF_UP)


def test_one_rounding_more_would_be_wrong(spark: SparkSession) -> None:
    """The cases are such that plain division fails."""
    frame = spark.createDataFrame(_cases(2), "total DECIMAL(28,2), n BIGINT")
    plain = frame.selectExpr("total", "n", "CAST(total / CAST(n AS DECIMAL(20,0)) AS DECIMAL(22,6)) AS mean").collect()
    assert any(row["mean"] != _exact(row["total"], row["n"], Decimal("0.000001")) for row in plain)
