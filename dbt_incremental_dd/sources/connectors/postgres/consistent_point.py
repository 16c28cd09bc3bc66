"""The one position in a database's log up to which a run reads all its tables: the end of the log, or the position of
a slot whose exported snapshot tables are copied as of."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import (
    ConsistentPoint,
    PointMaker,
    Stream,
    TableRequest,
)
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError
from dbt_incremental_dd.sources.connectors.database_log.last_commit import POSITION, LastCommit
from dbt_incremental_dd.sources.connectors.database_log.spool import Spool
from dbt_incremental_dd.sources.connectors.postgres import copying, slots
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError, connected, told
from dbt_incremental_dd.sources.connectors.postgres.followers import followers, require_unbroken
from dbt_incremental_dd.sources.connectors.postgres.spec import PostgresSpec
from dbt_incremental_dd.sources.connectors.postgres.stream import Followed, follow
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable, describe, table_name
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection


@dataclass(frozen=True)
class Feed:
    """A database's log as one project reads it."""

    storage: Storage
    url: str = field(repr=False)
    slot: str
    publication: str


def make(feed: Feed, requests: Sequence[TableRequest[PostgresSpec]], upto: int | None = None) -> ConsistentPoint:
    """The point for these sources, as ``PointMaker`` has it. Raises PostgresError where nothing of the database can be
    read."""
    with connected(feed.url) as connection:
        return _Making(feed, connection, requests, upto).make()


class _Making(PointMaker[PostgresSpec, PostgresTable]):
    def __init__(
        self, feed: Feed, connection: Connection, requests: Sequence[TableRequest[PostgresSpec]], upto: int | None
    ) -> None:
        super().__init__(requests, upto)
        self._feed = feed
        self._connection = connection
        self._server = slots.server(connection)
        self._state = slots.slot_state(connection, feed.slot, self._server)

    def _begin(self) -> None:
        self._require_continuity()
        self._advance()

    def _publish(self, tables: Mapping[str, PostgresTable]) -> None:
        if tables:
            slots.publish(self._connection, self._feed.publication, list(tables.values()))

    def _require_continuity(self) -> None:
        for name, one in self._requests.items():
            if not one.last.progress:
                continue
            try:
                require_unbroken(name, one.last.progress, self._feed.slot, self._state, self._server)
            except PostgresError as error:
                self._errors[name] = error
        found = followers(self._feed.storage, self._feed.slot, self._server)
        if self._state is None and found:
            raise PostgresError(
                f"replication slot {self._feed.slot} is gone, and with it what came since",
                f"Take in anew what followed it: remove the folders of {', '.join(sorted(found))} under state_root, "
                "then run the models on them with --full-refresh.",
            )
        self._followers = found
        latest = max((found or {}).values(), default=0)
        if latest > slots.flushed(self._connection):
            raise PostgresError(
                f"the server's log ends before {slots.lsn_text(latest)}, up to which it was taken in",
                "Was it restored from a backup? Take its sources in anew: remove their folders under state_root, drop "
                f"replication slot {self._feed.slot}, then run their models with --full-refresh.",
            )

    def _advance(self) -> None:
        """The server may forget what all followers have."""
        least = min((self._followers or {}).values(), default=0)
        if self._state is not None and least > self._state.confirmed:
            reached("slot: before")
            slots.patiently(lambda: slots.advance(self._connection, self._feed.slot, least))
            reached("slot: advanced")

    def _described(self, request: TableRequest[PostgresSpec]) -> PostgresTable:
        with told(self._feed.url):
            return describe(self._connection, table_name(request.spec), request.declared)

    def _mark(self, table: PostgresTable) -> list[Any]:
        return [table.shape, slots.membership(self._connection, self._server, self._feed.publication, table)]

    def _end(self) -> int:
        return slots.flushed(self._connection)

    def _settled(self, position: int, stream: Stream, known: Mapping[str, LastCommit]) -> int:
        if position % self._server.block:
            return position
        # The log may have been written up to here in the middle of a record.
        return max(stream.last, *(one.position for one in known.values()), 0)

    def _copied(self, names: Sequence[str], tables: Mapping[str, PostgresTable], spools: dict[str, Spool]) -> int:
        # As of a position at which the slot begins, or a passing one where it is there already.
        feed = self._feed
        own = feed.slot if self._state is None else f"{feed.slot[:40]}_{os.getpid()}_{time.time_ns() % 10**9}"
        with ExitStack() as exporting, connected(feed.url) as connection:
            point = slots.consistent_point(feed.url, own, is_temporary=self._state is not None)
            position, snapshot = exporting.enter_context(point)
            reached("slot: made")
            self._state = self._state or slots.Slot(position)
            copying.begin(connection, snapshot)
            exporting.close()  # the transaction keeps the snapshot
            for name in names:
                try:
                    spools[name] = copying.copied(connection, feed.storage, tables[name])
                except DatabaseError as error:  # of its values; the others are fine
                    self._errors[name] = error
                reached("table: copied")
        return position

    def _followed(self, tables: Mapping[str, PostgresTable], known: Mapping[str, LastCommit], position: int) -> Stream:
        followed = {name: Followed(table, known[name].position) for name, table in tables.items()}
        feed = self._feed
        return slots.patiently(
            lambda: follow(
                self._connection,
                feed.storage,
                feed.slot,
                publication=feed.publication,
                followed=followed,
                upto=position,
            )
        )

    def _progress(self, position: int, mark: list[Any]) -> dict[str, Any]:
        return {
            POSITION: position,
            "system": self._server.system,
            "database": self._server.database,
            "slot": self._feed.slot,
            "marks": mark,
        }
