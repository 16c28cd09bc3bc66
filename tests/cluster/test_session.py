"""A session that cannot reach the store says what is missing, before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster


def test_spark_without_hadoop_aws(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError, match=r"spark\.jars\.packages to org\.apache\.hadoop:hadoop-aws"):
        open_session("s3://a-bucket/state", {}, {"AWS_REGION": "eu-west-1"})
