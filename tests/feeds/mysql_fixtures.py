"""A MariaDB server for the tests of this folder, and databases on it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.relation.lazy_session import ANSI, TIME_ZONE, LazySession, SessionMemory, expected_settings
from tests.feeds.mysql import Feed
from tests.servers.mariadb import MariaDB, binary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Known(SessionMemory):
    """Of a session with Spark's usual rules."""

    settings: Mapping[str, str] = expected_settings({TIME_ZONE: "UTC", ANSI: "false"})


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """A MariaDB server; the test is skipped where none is installed, except in CI."""
    if binary() is None and os.environ.get("CI") != "true":
        pytest.skip("there is no MariaDB server")
    server = MariaDB()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mysql(mariadb: MariaDB, tmp_path: Path) -> Iterator[Feed]:
    """A database of its own; nothing that is done with it may need Spark."""
    made = Feed(without_spark(), mariadb, tmp_path)
    yield made
    made.close()


def without_spark() -> LazySession:
    """A session that fails if it is needed."""
    return LazySession(_no_spark, _Known())


def _no_spark() -> SparkSession:
    raise AssertionError("Spark was asked for")
