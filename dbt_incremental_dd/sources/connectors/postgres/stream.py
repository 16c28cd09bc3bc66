"""The log's transactions from a slot, split by table; nothing of the slot is consumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.sources.connectors.database_log.changes import Changes, changes
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import Stream
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError, ResyncRequired
from dbt_incremental_dd.sources.connectors.database_log.spool import Spool
from dbt_incremental_dd.sources.connectors.postgres.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Truncate,
    Update,
    decode,
)
from dbt_incremental_dd.sources.connectors.postgres.slots import lsn_text
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable, quote_identifier
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

_PEEK = """
SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, NULL,
'proto_version', '1', 'publication_names', %s)
"""
_AT_A_TIME = 5_000


@dataclass(frozen=True)
class Followed:
    """A table, and the position up to which it has been taken in."""

    table: PostgresTable
    position: int


def follow(
    connection: Connection, storage: Storage, slot: str, publication: str, followed: Mapping[str, Followed], upto: int
) -> Stream:
    """What transactions that ended after each table's position, and up to ``upto``, did to it; tables by the sources'
    names."""
    reader = _Reader(storage, {one.table.oid: one for one in followed.values()}, upto)
    try:
        for message in _messages(connection, slot, publication, upto):
            reader.take(message)
        return reader.finish({one.table.oid: name for name, one in followed.items()})
    except BaseException:
        reader.remove()
        raise


def _messages(connection: Connection, slot: str, publication: str, upto: int) -> Iterator[Message]:
    given = (slot, lsn_text(upto), quote_identifier(publication))
    # A cursor of the server's, which is there in a transaction only: so many rows at a time are held here.
    with connection.transaction(), connection.cursor(name="dd_log", binary=True) as cursor:
        cursor.itersize = _AT_A_TIME
        cursor.execute(_PEEK, given)
        reached("log: read")
        for (data,) in cursor:
            message = decode(bytes(data))
            if message is not None:
                yield message


class _Reader:
    """A transaction's end is told after its changes, so that a table's changes go to those of its own only then where
    the transaction may be beyond ``upto``, or at or before a table's position: the positions are compared with where
    the commit record begins, which is told first. All of them are ends of records, so both say the same."""

    def __init__(self, storage: Storage, followed: Mapping[int, Followed], upto: int) -> None:
        self._followed = followed
        self._upto = upto
        self._commit = 0
        self._last = 0
        self._relations: dict[int, Relation] = {}
        self._changes: dict[int, Changes] = {oid: changes(storage, one.table) for oid, one in followed.items()}
        self._left: dict[int, DatabaseError | None] = {}
        """Tables of which nothing more is read, and why."""
        self._checked: set[int] = set()

    def take(self, message: Message) -> None:
        if isinstance(message, Begin):
            self._commit = message.commit
        elif isinstance(message, Commit):
            if self._commit < self._upto:
                self._last = message.end
        elif isinstance(message, Relation):
            self._relations[message.oid] = message
            self._checked.discard(message.oid)
        elif isinstance(message, Truncate):
            for oid in message.oids:
                if self._is_wanted(oid):
                    self._changes[oid].truncate()
        elif self._is_wanted(message.oid):
            try:
                self._check(message.oid)
                _apply(self._changes[message.oid], self._followed[message.oid].table, message)
            except ResyncRequired:
                self._leave(message.oid, None)
            except DatabaseError as error:
                self._leave(message.oid, error)

    def finish(self, names: Mapping[int, str]) -> Stream:
        found: dict[str, Spool | DatabaseError | None] = {}
        for oid, one in self._changes.items():
            try:
                found[names[oid]] = self._left[oid] if oid in self._left else one.finish()
            except DatabaseError as error:
                found[names[oid]] = error
                one.spool.remove()
        truncated = frozenset(names[oid] for oid, one in self._changes.items() if one.is_truncated)
        return Stream(found, truncated, self._last)

    def remove(self) -> None:
        for one in self._changes.values():
            one.spool.remove()

    def _leave(self, oid: int, why: DatabaseError | None) -> None:
        self._left[oid] = why
        self._changes[oid].spool.clear()

    def _is_wanted(self, oid: int) -> bool:
        one = self._followed.get(oid)
        return one is not None and oid not in self._left and one.position <= self._commit < self._upto

    def _check(self, oid: int) -> None:
        if oid not in self._checked:
            _require_same(self._followed[oid].table, self._relations[oid])
            self._checked.add(oid)


def _require_same(table: PostgresTable, relation: Relation) -> None:
    """Raises ResyncRequired where the table looked otherwise at that point of the log."""
    known = [(column.name, column.type, column.modifier) for column in table.columns]
    seen = [(column.name, column.type, column.modifier) for column in relation.columns]
    keys = {column.name for column in relation.columns if column.is_key}
    wanted = set(table.key) or {column.name for column in table.columns}
    if seen != known or keys != wanted or (relation.identity == "f") == bool(table.key):
        raise ResyncRequired


def _apply(changes: Changes, table: PostgresTable, event: Insert | Update | Delete) -> None:
    if isinstance(event, Insert):
        changes.insert(event.new)
    elif not table.key and not event.is_full:
        raise ResyncRequired
    elif isinstance(event, Update):
        changes.update(event.old, event.new)
    else:
        changes.delete(event.old)
