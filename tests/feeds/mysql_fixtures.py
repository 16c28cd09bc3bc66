"""Servers of MariaDB and MySQL for the tests of this folder, and databases on them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.relation.lazy_session import ANSI, TIME_ZONE, LazySession, SessionMemory, expected_settings
from tests.feeds.mysql import Feed
from tests.servers.binlog_server import BinlogServer
from tests.servers.mariadb import MariaDB
from tests.servers.mysql import MySQL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Known(SessionMemory):
    """Of a session with Spark's usual rules."""

    settings: Mapping[str, str] = expected_settings({TIME_ZONE: "UTC", ANSI: "false"})


@pytest.fixture(scope="session", params=[MariaDB, MySQL], ids=["mariadb", "mysql"])
def binlog_server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    """Each kind of server, one after the other. A test is skipped where there is none; in CI, MariaDB must be there."""
    kind: type[MariaDB | MySQL] = request.param
    missing = kind.missing()
    if missing and not (kind is MariaDB and os.environ.get("CI") == "true"):
        pytest.skip(missing)
    server = kind()
    server.start()
    yield server
    server.stop()


only_mariadb = pytest.mark.parametrize("binlog_server", [MariaDB], ids=["mariadb"], indirect=True)
only_mysql = pytest.mark.parametrize("binlog_server", [MySQL], ids=["mysql"], indirect=True)
"""For tests of what the other one does not have."""


@pytest.fixture
def mysql(binlog_server: BinlogServer, tmp_path: Path) -> Iterator[Feed]:
    """A database of its own; nothing that is done with it may need Spark."""
    made = Feed(without_spark(), binlog_server, tmp_path)
    yield made
    made.close()


def without_spark() -> LazySession:
    """A session that fails if it is needed."""
    return LazySession(_no_spark, _Known())


def _no_spark() -> SparkSession:
    raise AssertionError("Spark was asked for")
