"""A PostgreSQL server for the tests of this folder, and databases on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.feeds.postgres import Feed
from tests.servers.postgres import Postgres, binaries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; the test is skipped where none is installed, except in CI."""
    if binaries() is None and os.environ.get("CI") != "true":
        pytest.skip("there is no PostgreSQL server")
    server = Postgres()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def feed(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> Iterator[Feed]:
    """A database of its own."""
    made = Feed(spark, postgres, tmp_path)
    yield made
    made.close()
