"""Which columns a query determines, and whether a project's report says enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects.compare import determined
from tests.projects.project import Ran
from tests.projects.report import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _answer(spark: SparkSession, *rows: str) -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t(k, v, n, l, d, m)")


def test_columns_that_all_answers_share(spark: SparkSession) -> None:
    """``n`` has the same values in both, but not beside the same ``v``; doubles may differ in their last digits."""
    first = ("(1, 'a', 10, array(1), 0.3D, map(1, 2))", "(1, NULL, 20, array(2), 1D, NULL)")
    one = _answer(spark, *first, "(2, 'c', 20, NULL, 1D, NULL)")
    other = _answer(
        spark,
        "(2, 'c', 20, NULL, 1D, NULL)",
        "(1, 'a', 20, array(1), 0.1D + 0.2D, map(1, 2))",
        "(1, NULL, 10, array(2), 1D, map(1, 3))",
    )
    assert determined([one, other]) == ["k", "v", "l", "d"]
    assert determined([one, one, one]) == ["k", "v", "n", "l", "d", "m"]
    assert determined([one, _answer(spark, *first)]) == []
    assert determined([one.limit(0), one.limit(0)]) == ["k", "v", "n", "l", "d", "m"]


@pytest.mark.parametrize(("failed", "expected"), [(0, False), (1, False), (2, True)])
def test_a_report_of_few_models_says_little(failed: int, expected: bool) -> None:
    report = Report("p", ["a", "b", "c"], {})
    for name in report.models[:failed]:
        report.built(0, 1.0, [Ran(name, "error", "no such table")])
    assert report.says_little is expected
