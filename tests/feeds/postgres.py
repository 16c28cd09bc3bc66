"""Tables of a PostgreSQL server as sources, taken in by runs, compared with the server's own rows."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from dbt_incremental_dd.relation.lazy_session import LazySession
from tests.feeds.database import DatabaseFeed, plain
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class Feed(DatabaseFeed):
    """A database of its own, and a state root that follows tables of it."""

    connector = "postgres"
    schema = "public"

    def __init__(self, spark: SparkSession, server: Postgres, folder: Path) -> None:
        self.database = f"d{next(_NUMBERS)}"
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.database}")
        super().__init__(LazySession.of(spark), folder)
        self.server = server
        self.url = server.url(database=self.database)
        self.options = {"url": self.url}
        self.connection = self.connect()

    def connect(self) -> psycopg.Connection[Any]:
        """One more connection, in autocommit mode."""
        return psycopg.connect(self.url, autocommit=True)

    def sql(self, *statements: str) -> None:
        """Statements in a transaction each; several of one string are one transaction."""
        for statement in statements:
            self.connection.execute(statement)

    def actual(self, name: str, columns: str = "*") -> Counter[tuple[Any, ...]]:
        """The server's rows."""
        found = self.connection.execute(f'SELECT {columns} FROM "{name}"').fetchall()
        return Counter(tuple(map(plain, row)) for row in found)

    def slot(self) -> tuple[Any, ...]:
        """The name and the confirmed position of the slot."""
        query = "SELECT slot_name, confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = %s"
        (found,) = self.connection.execute(query, (self.database,)).fetchall()
        return tuple(found)

    def close(self) -> None:
        """Drops its slots."""
        self.connection.close()
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s",
                (self.database,),
            )
