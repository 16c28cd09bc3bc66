"""A session that cannot reach the store says what is missing, before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.runtime.session import _defaults, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster


def test_spark_without_hadoop_aws(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError, match=r"spark\.jars\.packages to org\.apache\.hadoop:hadoop-aws"):
        open_session("s3://a-bucket/state", {}, {"AWS_REGION": "eu-west-1"})


def test_defaults_are_those_of_the_machines_that_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_MASTER", raising=False)
    partitions = "spark.sql.shuffle.partitions"
    assert partitions in _defaults("/state", "/state", {})
    assert partitions not in _defaults("/state", "/state", {"spark.master": "spark://master:7077"})
    assert _defaults("s3://b/state", "/local", {})["spark.sql.warehouse.dir"] == "s3a://b/state/warehouse"
    assert _defaults("/state", "/state", {})["spark.sql.warehouse.dir"] == "/state/warehouse"
