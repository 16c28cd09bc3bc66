"""What the tests of this folder share."""

from __future__ import annotations

from tests.feeds.mysql_fixtures import binlog_server, mysql
from tests.feeds.postgres_fixtures import feed, postgres

__all__ = ["binlog_server", "feed", "mysql", "postgres"]
