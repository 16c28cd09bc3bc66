"""A project in the shape of public packages for dbt-spark, against its own ``table`` build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.projects.run import Options, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = Path(__file__).with_name("shop")


def test_a_project_of_packages_is_exact_and_by_deltas(spark: SparkSession, tmp_path: Path) -> None:
    report = check(SHOP, tmp_path / "shop", Options(rounds=1, seed=5, schema="shop"), print)
    how = {name.split(".")[-1]: report.how(name) for name in report.models}
    assert not report.wrong, report.text()
    assert not report.undetermined and not report.rounded and set(report.models) == report.filled, report.text()
    assert len(how) == 18
    assert {name: word for name, word in how.items() if word != "by deltas"} == {}, report.text()
    assert list(report.removed.values()) == [("unique_key", "partition_by")]
