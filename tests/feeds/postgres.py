"""Tables of a PostgreSQL server as sources, taken in by runs, compared with the server's own rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

import dbt_incremental_dd
from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.trace.layout import Storage
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class Feed:
    """A database of its own, and a state root that follows tables of it."""

    def __init__(self, spark: SparkSession, server: Postgres, folder: Path) -> None:
        self.database = f"d{next(_NUMBERS)}"
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.database}")
        self.server = server
        self.spark = spark
        self.folder = folder
        self.storage = Storage(str(folder / "state"))
        self.url = server.url(database=self.database)
        self.told: list[str] = []
        self.connection = self.connect()

    def connect(self) -> psycopg.Connection[Any]:
        """One more connection, in autocommit mode."""
        return psycopg.connect(self.url, autocommit=True)

    def sql(self, *statements: str) -> None:
        """Statements in a transaction each; several of one string are one transaction."""
        for statement in statements:
            self.connection.execute(statement)

    def spec(self, name: str, columns: Mapping[str, str] | None = None, **settings: Any) -> SourceSpec:
        """A table of the schema public."""
        options = {"url": self.url, **settings.pop("options", {})}
        meta = {"connector": "postgres", "options": options, **settings}
        return parse_source(f"public.{name}", f"`public`.`{name}`", meta, columns or {}, "")

    def run(self, *specs: SourceSpec, expected: tuple[SourceSpec, ...] | None = None) -> dict[str, int]:
        """One run that takes in these; how many updates each has."""
        run = Run(LazySession.of(self.spark), self.storage, "run", None, self.told.append)
        run.scope.expect(lambda: specs if expected is None else expected)
        return {spec.name.split(".", 1)[1]: run.source(spec).rows for spec in specs}

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        """What is stored of a table, as a multiset."""
        table = dbt_incremental_dd.open(self.storage.root)[f"public.{name}"].as_of()
        names = [column for column in table.column_names if column != "dd_diff"]
        counts: Counter[tuple[Any, ...]] = Counter()
        for row in table.to_pylist():
            counts[tuple(_plain(row[column]) for column in names)] += row["dd_diff"]
        return counts

    def actual(self, name: str, columns: str = "*") -> Counter[tuple[Any, ...]]:
        """The server's rows."""
        found = self.connection.execute(f'SELECT {columns} FROM "{name}"').fetchall()
        return Counter(tuple(map(_plain, row)) for row in found)

    def check(self, *names: str, columns: str = "*") -> None:
        """What is stored is what the server has."""
        for name in names:
            stored, actual = self.rows(name), self.actual(name, columns)
            assert stored == actual, f"{name}: missing {actual - stored}, too many {stored - actual}"

    def progress(self, name: str) -> dict[str, Any]:
        """How far a source is."""
        place = self.storage.collection(f"public.{name}")
        log = place.log()
        assert log is not None
        manifest = place.read_manifest(log.manifest)
        assert isinstance(manifest, SourceManifest)
        return dict(manifest.progress)

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


def _plain(value: Any) -> Any:
    return repr(value + 0.0) if isinstance(value, float) else value
