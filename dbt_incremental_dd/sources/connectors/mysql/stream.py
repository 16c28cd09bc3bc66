"""The log's transactions, split by table.

A run reads from one end of a transaction to another, so that where transactions end need not be known; those that may
be undone later (XA) are left aside.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.sources.connectors.database_log.changes import Changes, changes
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import Stream
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError, ResyncRequired
from dbt_incremental_dd.sources.connectors.database_log.spool import Spool
from dbt_incremental_dd.sources.connectors.mysql import binlog, payload, statements
from dbt_incremental_dd.sources.connectors.mysql.binlog import Event, Rows, TableMap
from dbt_incremental_dd.sources.connectors.mysql.connection import MysqlError
from dbt_incremental_dd.sources.connectors.mysql.foreign_keys import Cascade
from dbt_incremental_dd.sources.connectors.mysql.row_changes import changed, reaches
from dbt_incremental_dd.sources.connectors.mysql.rows import RowReader, require_same
from dbt_incremental_dd.sources.connectors.mysql.server import Place, file_number, position_text
from dbt_incremental_dd.sources.connectors.mysql.tables import MysqlTable
from dbt_incremental_dd.trace.layout import Storage

_GTIDS = (33, 34, 42)
_MARIADB_GTID = 162
_PREPARED = 64
"""The flag of MariaDB's GTID events that begin what an XA PREPARE ends."""
_UNREADABLE = (binlog.Malformed, struct.error, zlib.error, IndexError, UnicodeDecodeError)
_STATEMENTS = (binlog.QUERY, binlog.QUERY_COMPRESSED)


@dataclass(frozen=True)
class Followed:
    """A table, the position up to which it has been taken in, and when that file of the log was begun, in seconds since
    1970."""

    table: MysqlTable
    position: int
    began: int


@dataclass(frozen=True)
class Read:
    """``reasons``: why tables have to be copied again, by the sources' names; ``began``: when the files of the log that
    were read were begun, by their numbers."""

    stream: Stream
    reasons: Mapping[str, str]
    began: Mapping[int, int]


def follow(storage: Storage, events: Iterable[Event], followed: Mapping[str, Followed], upto: int) -> Read:
    """What transactions that ended after each table's position, and up to ``upto``, did to it; tables by the sources'
    names. Raises MysqlError where the log ends before."""
    reader = _Reader(storage, followed)
    try:
        for event in events:
            position = Place(event.file, event.end).position
            if position > upto and event.end:
                break
            reader.take(event, position)
            if position >= upto or reader.is_done:
                break
        else:
            if any(one.position < upto for one in followed.values()):
                raise MysqlError(f"the log ended before {position_text(upto)}", "Run again.")
        reached("log: read")
        return reader.finish()
    except _UNREADABLE as error:
        reader.remove()
        raise MysqlError(f"the log cannot be read: {error}", "Run again; if it stays so, report it, please.") from None
    except BaseException:
        reader.remove()
        raise


@dataclass
class _Table:
    """What events of one table's rows mean: ``own`` sources of it, and those that its changes reach otherwise."""

    map: TableMap
    own: list[str]
    reached: list[tuple[str, Cascade]]
    reader: RowReader | None = None


@dataclass
class _Reader:
    storage: Storage
    followed: Mapping[str, Followed]
    _changes: dict[str, Changes] = field(default_factory=dict)
    _left: dict[str, DatabaseError | None] = field(default_factory=dict)
    """Sources of which nothing more is read, and why."""
    _reasons: dict[str, str] = field(default_factory=dict)
    _began: dict[int, int] = field(default_factory=dict)
    _maps: dict[int, bytes] = field(default_factory=dict)
    _tables: dict[int, _Table] = field(default_factory=dict)
    _touched: set[str] = field(default_factory=set)
    """Sources that the transaction has changed."""
    _is_prepared: bool = False
    """Whether the transaction is decided about later."""
    _last: int = 0
    """The position of the last event."""

    def __post_init__(self) -> None:
        self._changes = {name: changes(self.storage, one.table) for name, one in self.followed.items()}
        self._takes: dict[int, Callable[[Event, int], None]] = {
            binlog.FORMAT: self._file,
            binlog.TABLE_MAP: self._table_map,
            binlog.XA_PREPARE: self._prepared,
            _MARIADB_GTID: self._transaction,
            **dict.fromkeys(_GTIDS, self._transaction),
            **dict.fromkeys(binlog.ROWS, self._rows),
            **dict.fromkeys(_STATEMENTS, self._statement),
            **dict.fromkeys((binlog.INCIDENT, binlog.EXECUTE_LOAD), self._unknown),
            binlog.PARTIAL_UPDATE: self._partial_update,
            binlog.TRANSACTION_PAYLOAD: self._payload,
        }

    def take(self, event: Event, position: int) -> None:
        if event.end and position < self._last:  # offsets have 32 bits, and begin again in a transaction beyond 4 GiB
            raise MysqlError(
                f"a file of the log is larger than 4 GiB: what is behind {position_text(self._last)} has no position",
                "Take its sources in anew: remove their folders under state_root, then run their models with "
                "--full-refresh.",
            )
        self._last = max(position, self._last)
        self._take(event, position)

    def _take(self, event: Event, position: int) -> None:
        take = self._takes.get(event.kind)
        if take is not None:
            take(event, position)

    def _payload(self, event: Event, position: int) -> None:
        for one in payload.events(event):
            self._take(one, position)

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to be read of any source."""
        return len(self._left) == len(self.followed)

    def finish(self) -> Read:
        found: dict[str, Spool | DatabaseError | None] = {}
        for name, one in self._changes.items():
            try:
                found[name] = self._left[name] if name in self._left else one.finish()
            except DatabaseError as error:
                found[name] = error
                one.spool.remove()
        truncated = frozenset(name for name, one in self._changes.items() if one.is_truncated)
        return Read(Stream(found, truncated), self._reasons, self._began)

    def remove(self) -> None:
        for one in self._changes.values():
            one.spool.remove()

    def _leave(self, name: str, why: DatabaseError | str) -> None:
        self._left[name] = why if isinstance(why, DatabaseError) else None
        if isinstance(why, str):
            self._reasons[name] = why
        self._changes[name].spool.clear()

    def _wanted(self, names: Iterable[str], position: int) -> list[str]:
        return [name for name in names if name not in self._left and self.followed[name].position < position]

    def _file(self, event: Event, position: int) -> None:
        self._maps, self._tables = {}, {}
        number = file_number(position)
        self._began[number] = event.began
        for name, one in self.followed.items():
            if file_number(one.position) == number and one.began != event.began and name not in self._left:
                self._leave(name, lost("the log was reset"))

    def _transaction(self, event: Event, position: int) -> None:
        self._touched = set()
        self._is_prepared = event.kind == _MARIADB_GTID and bool(event.body[12] & _PREPARED)

    def _prepared(self, event: Event, position: int) -> None:
        if binlog.is_one_phase(event.body):
            self._resync(self._touched, position, "the log has an XA COMMIT ONE PHASE")
        self._is_prepared = False

    def _unknown(self, event: Event, position: int) -> None:
        self._resync(self.followed, position, f"the log has an event of kind {event.kind}, which does not tell of rows")

    def _resync(self, names: Iterable[str], position: int, why: str) -> None:
        for name in self._wanted(list(names), position):
            self._leave(name, why)

    def _statement(self, event: Event, position: int) -> None:
        query = binlog.query(event.kind, event.body)
        kind, shown = statements.kind_of(query.text), f"the log has {query.text[:60]!r}"
        if kind is statements.Kind.ROLLBACK:
            self._resync(self._touched, position, shown)
        elif kind is statements.Kind.XA_START:
            self._is_prepared = True
        elif kind in (statements.Kind.ROWS, statements.Kind.XA_COMMIT):
            self._resync(self.followed, position, shown)
        elif kind is statements.Kind.TABLES:
            emptied = statements.truncated(query.schema, query.text)
            for name in self._wanted(self.followed, position):
                table = self.followed[name].table
                if emptied == (table.schema, table.name):
                    self._changes[name].truncate()
                elif emptied is not None and emptied[1].casefold() != table.name.casefold():
                    continue
                elif any(statements.names(query.text, one) for one in _names(table)):
                    self._leave(name, shown)

    def _table_map(self, event: Event, position: int) -> None:
        number = binlog.table_id(event.body)
        if self._maps.get(number) != event.body:
            self._maps[number] = event.body
            self._tables.pop(number, None)

    def _table(self, number: int) -> _Table | None:
        if number not in self._tables and number in self._maps:
            map = binlog.table_map(self._maps[number])
            own = [name for name, one in self.followed.items() if _is(one.table, map)]
            reached = [
                (name, cascade)
                for name, one in self.followed.items()
                for cascade in one.table.cascades
                if (cascade.schema, cascade.table) == (map.schema, map.table)
            ]
            self._tables[number] = _Table(map, own, reached)
        return self._tables.get(number)

    def _rows(self, event: Event, position: int) -> None:
        table = self._table(binlog.table_id(event.body))
        if table is None or not (table.own or table.reached):
            return
        names = self._wanted(table.own, position)
        self._touched.update(names)
        if self._is_prepared:
            return
        found = binlog.rows(event.kind, event.body)
        for name, cascade in table.reached:
            if self._wanted([name], position) and reaches(cascade, table.map, found):
                self._leave(name, f"changes of {cascade.schema}.{cascade.table} reach it by a foreign key")
        names = self._wanted(table.own, position)
        if names:
            self._apply(table, found, names, position)

    def _partial_update(self, event: Event, position: int) -> None:
        table = self._table(binlog.table_id(event.body))
        if table is not None:
            names = [*table.own, *(name for name, _ in table.reached)]
            self._resync(names, position, "the log has parts of its JSON only: binlog_row_value_options was not empty")

    def _apply(self, table: _Table, found: Rows, names: list[str], position: int) -> None:
        own = self.followed[names[0]].table
        try:
            if not found.is_full:
                raise ResyncRequired("the log has parts of its rows only: binlog_row_image was not FULL")
            if table.reader is None:
                require_same(table.map, own.columns, own.width)
                table.reader = RowReader(table.map, own.columns)
            for name in names:
                changed(self._changes[name], found, table.reader)
        except ResyncRequired as error:
            self._resync(names, position, str(error) or "a change of its key cannot be told")
        except DatabaseError as error:
            for name in names:
                self._leave(name, error)
        except _UNREADABLE as error:
            where = f"{own.sql} up to {position_text(position)}"
            for name in names:
                self._leave(
                    name, MysqlError(f"the log's rows of {where} cannot be read: {error}", "Report it, please.")
                )


def lost(why: str) -> MysqlError:
    """What is wrong where the log does not go on from a source's position."""
    return MysqlError(
        f"{why}, and with it what came since",
        "Was the server restored from a backup, or RESET MASTER or RESET BINARY LOGS AND GTIDS run? Take it in anew: "
        "remove its folder under state_root, then run its models with --full-refresh.",
    )


def _is(table: MysqlTable, map: TableMap) -> bool:
    return (table.schema, table.name) == (map.schema, map.table)


def _names(table: MysqlTable) -> list[str]:
    """By which a statement may name the table, or what reaches it."""
    return [table.name, *(cascade.table for cascade in table.cascades)]
