"""The one position in a database's log up to which a run reads all its tables.

Tables that follow the log already have their changes from the slot, up to that position. Where one is new, or has
changed in a way that the log does not tell of, it is a position for which the server exports a snapshot, and the table
is copied as of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.connectors.postgres import copying, slots
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError, connected, told
from dbt_incremental_dd.sources.connectors.postgres.followers import (
    LastCommit,
    followers,
    require_columns,
    require_unbroken,
)
from dbt_incremental_dd.sources.connectors.postgres.spec import PostgresSpec
from dbt_incremental_dd.sources.connectors.postgres.spool import Spool
from dbt_incremental_dd.sources.connectors.postgres.stream import Followed, Stream, follow
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable, describe, table_name
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

_ATTEMPTS = 5
"""How often tables may be altered while a point is sought."""


@dataclass(frozen=True)
class Feed:
    """A database's log as one project reads it."""

    storage: Storage
    url: str = field(repr=False)
    slot: str
    publication: str


@dataclass(frozen=True)
class TableRequest:
    """A source, what is known of it, and the types that it declares."""

    spec: PostgresSpec
    last: LastCommit
    declared: Schema | None


@dataclass(frozen=True)
class TableChanges:
    """What a table has for a run: all rows (``is_whole``), or changes since ``last``."""

    table: PostgresTable
    last: LastCommit
    spool: Spool
    is_whole: bool
    progress: Mapping[str, Any]


@dataclass(frozen=True)
class ConsistentPoint:
    """``changes`` and ``errors`` by the sources' names."""

    position: int
    changes: Mapping[str, TableChanges]
    errors: Mapping[str, PostgresError]


def make(feed: Feed, requests: Sequence[TableRequest], upto: int | None = None) -> ConsistentPoint:
    """The point for these sources; ``upto``: of a run that has one, which those that follow the log are to have, too.

    Raises PostgresError where nothing of the database can be read.
    """
    with connected(feed.url) as connection:
        return _Making(feed, connection, requests, upto).make()


class _Making:
    def __init__(self, feed: Feed, connection: Connection, requests: Sequence[TableRequest], upto: int | None) -> None:
        self._feed = feed
        self._connection = connection
        self._requests = {one.spec.name: one for one in requests}
        self._upto = upto
        self._server = slots.server(connection)
        self._state = slots.slot_state(connection, feed.slot, self._server)
        self._errors: dict[str, PostgresError] = {}
        self._again: set[str] = set()
        """Sources that follow the log and have to be copied all the same."""

    def make(self) -> ConsistentPoint:
        """Until a point is found in which no table was altered."""
        self._require_continuity()
        self._advance()
        tables = list(self._tables().values())
        if tables:
            slots.publish(self._connection, self._feed.publication, tables)
        for _ in range(_ATTEMPTS):
            found = self._attempt()
            if found is not None:
                return found
        raise PostgresError("its tables are altered all the time", "Run again when they are not.")

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

    def _tables(self) -> dict[str, PostgresTable]:
        """The tables as they are now; what is wrong with one is its own error."""
        found = {}
        for name, one in self._requests.items():
            if name in self._errors:
                continue
            try:
                with told(self._feed.url):
                    table = describe(self._connection, table_name(one.spec), one.declared)
                require_columns(table, one.last.stored)
                found[name] = table
            except PostgresError as error:
                self._errors[name] = error
        return found

    def _marked(self, tables: Mapping[str, PostgresTable]) -> dict[str, list[Any]]:
        """For each table what stays the same as long as the log tells of every change."""
        found = {}
        for name, table in tables.items():
            try:
                member = slots.membership(self._connection, self._server, self._feed.publication, table)
                found[name] = [table.shape, member]
            except PostgresError as error:
                self._errors[name] = error
        return found

    def _attempt(self) -> ConsistentPoint | None:
        """The point; None where a table was altered meanwhile, or turns out to need a copy."""
        tables = self._tables()
        marks = self._marked(tables)
        known = {name: self._requests[name].last for name in marks}
        fresh = [name for name in marks if name in self._again or known[name].progress.get("marks") != marks[name]]
        spools: dict[str, Spool] = {}
        try:
            position = self._copied(fresh, tables, spools) if fresh else self._end()
            rest = {tables[name].oid: name for name in marks if name not in fresh}
            stream = self._followed(rest, tables, known, position)
            for oid, name in rest.items():
                self._sort(name, stream.changes[oid], spools)
            marks = {name: mark for name, mark in marks.items() if name not in self._errors}
            is_found = spools.keys() == marks.keys() and self._marked(self._tables()) == marks
        except BaseException:
            _remove(spools)
            raise
        if not is_found:
            _remove(spools)
            return None
        if not fresh and self._upto is None and position % self._server.block == 0:
            # The log may have been written up to here in the middle of a record.
            position = max(stream.last, *(one.position for one in known.values()), 0)
        whole = {*fresh, *(name for oid, name in rest.items() if oid in stream.truncated)}
        changes = {
            name: TableChanges(tables[name], known[name], spool, name in whole, self._progress(position, marks[name]))
            for name, spool in spools.items()
        }
        return ConsistentPoint(position, changes, self._errors)

    def _sort(self, name: str, found: Spool | PostgresError | None, spools: dict[str, Spool]) -> None:
        """Whether there are changes, something is wrong, or the table has to be copied again."""
        if isinstance(found, PostgresError):
            self._errors[name] = found
        elif found is None:
            self._again.add(name)
        else:
            spools[name] = found

    def _end(self) -> int:
        return slots.flushed(self._connection) if self._upto is None else self._upto

    def _copied(self, names: Sequence[str], tables: Mapping[str, PostgresTable], spools: dict[str, Spool]) -> int:
        """Copies tables as of a position at which the slot begins, or a passing one where it is there already."""
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
                except PostgresError as error:  # of its values; the others are fine
                    self._errors[name] = error
                reached("table: copied")
        return position

    def _followed(
        self,
        names: Mapping[int, str],
        tables: Mapping[str, PostgresTable],
        known: Mapping[str, LastCommit],
        position: int,
    ) -> Stream:
        if not names:
            return Stream({}, frozenset(), 0)
        feed = self._feed
        followed = {oid: Followed(tables[name], known[name].position) for oid, name in names.items()}
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

    def _progress(self, position: int, marks: list[Any]) -> dict[str, Any]:
        return {
            "lsn": position,
            "system": self._server.system,
            "database": self._server.database,
            "slot": self._feed.slot,
            "marks": marks,
        }


def _remove(spools: Mapping[str, Spool]) -> None:
    for spool in spools.values():
        spool.remove()
