"""A state root for which Spark lacks a package: an error that names it, before anything is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("root", "package"),
    [
        ("s3://bucket/state", "org.apache.hadoop:hadoop-aws"),
        ("gs://bucket/state", "org.apache.hadoop:hadoop-gcp"),
        ("abfss://box@account.dfs.core.windows.net/state", "org.apache.hadoop:hadoop-azure"),
    ],
)
def test_a_missing_package_is_named(spark: SparkSession, root: str, package: str) -> None:
    with pytest.raises(StateError, match=f"cannot reach state_root {root}") as raised:
        open_session(root, {})
    assert package in str(raised.value)
