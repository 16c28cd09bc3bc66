"""One Spark session for all tests of lake tables, with the connectors that are published for its version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from dbt_incremental_dd.runtime.session import open_session
from tests.conftest import SETTINGS, forget_defaults
from tests.servers.jars import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = ".".join(pyspark.__version__.split(".")[:2])
DELTA = f"io.delta:delta-spark_{VERSION}_2.13:4.4.0"
ICEBERG = f"org.apache.iceberg:iceberg-spark-runtime-{VERSION}_2.13:1.12.0"
_OWN = ("delta-", "iceberg-", "unitycatalog-")
"""What the connectors bring; the rest of what they need is Spark's."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """As for the other tests, with Delta for Spark 4.2, and Iceberg for 4.1, the newest that there is."""
    root: Path = tmp_path_factory.mktemp("spark")
    session = open_session(str(root), {**SETTINGS, **(_iceberg(root) if VERSION == "4.1" else _delta())})
    forget_defaults(session)
    yield session
    session.stop()


def _jars(coordinates: str) -> str:
    return ",".join(str(jar) for jar in jars(coordinates) if jar.name.startswith(_OWN))


def _delta() -> dict[str, str]:
    return {
        "spark.jars": _jars(DELTA),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A snapshot of a small table is computed in so many tasks.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def _iceberg(root: Path) -> dict[str, str]:
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    return {
        "spark.jars": _jars(ICEBERG),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": catalog,
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"{root}/iceberg",
    }
