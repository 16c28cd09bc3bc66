"""What transactions do to one table, as net changes: of each key the last row, or of each whole row how often it came
and went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from dbt_incremental_dd.sources.connectors.postgres.pgoutput import (
    UNCHANGED,
    Cell,
    Cells,
    Delete,
    Insert,
    Relation,
    Update,
)
from dbt_incremental_dd.sources.connectors.postgres.spool import Spool, change_schema, texts, typed
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable
from dbt_incremental_dd.sources.records import GONE, KEPT, ORDER, WAS
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    Key = tuple[Cell, ...]


class ResyncRequired(Exception):
    """The changes cannot be told from the log alone; the table has to be copied again."""


class Changes(Protocol):
    """Takes a table's events in their order."""

    spool: Spool
    is_truncated: bool

    def expect(self, relation: Relation) -> None:
        """Raises ResyncRequired where the table looked otherwise at that point of the log."""

    def take(self, event: Insert | Update | Delete) -> None:
        """One event."""

    def truncate(self) -> None:
        """All rows are gone, of those that are stored as well."""

    def finish(self) -> Spool:
        """What is to be taken in."""


def changes(storage: Storage, table: PostgresTable) -> Changes:
    """None so far."""
    spool = Spool(storage, change_schema(table))
    return _ByKey(table, spool) if table.key else _ByRow(table, spool)


def _expect(table: PostgresTable, relation: Relation) -> None:
    known = [(column.name, column.type, column.modifier) for column in table.columns]
    seen = [(column.name, column.type, column.modifier) for column in relation.columns]
    keys = {column.name for column in relation.columns if column.is_key}
    wanted = set(table.key) or {column.name for column in table.columns}
    if seen != known or keys != wanted or (relation.identity == "f") == bool(table.key):
        raise ResyncRequired


def _size(cells: Cells) -> int:
    return sum(len(cell) for cell in cells if isinstance(cell, bytes)) + 16 * len(cells)


def _stored(table: PostgresTable, rows: Sequence[Cells]) -> list[pa.ChunkedArray]:
    columns: list[list[bytes | None]] = [[] for _ in table.columns]
    for cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell if isinstance(cell, bytes) else None)
    return typed(table, [texts(values, of.name) for values, of in zip(columns, table.columns, strict=True)])


@dataclass
class _Row:
    """``cells`` is None of a key that is gone; unchanged ones are those of the stored row with the key ``was``."""

    cells: Cells | None
    was: Key | None = None


@dataclass
class _ByKey:
    table: PostgresTable
    spool: Spool
    is_truncated: bool = False
    _rows: dict[Key, _Row] = field(default_factory=dict)
    _bytes: int = 0
    _parts: int = 0

    def expect(self, relation: Relation) -> None:
        _expect(self.table, relation)

    def take(self, event: Insert | Update | Delete) -> None:
        if isinstance(event, Delete):
            self._put(self._key(event.old), _Row(None))
            return
        key = self._key(event.new)
        if isinstance(event, Insert):
            self._put(key, _Row(event.new))
            return
        before = key if event.old is None else self._key(event.old)
        row = self._completed(event, before)
        if before != key:
            self._put(before, _Row(None))
        self._put(key, row)

    def truncate(self) -> None:
        self._rows, self._bytes, self.is_truncated = {}, 0, True
        self.spool.clear()

    def finish(self) -> Spool:
        self._flush()
        return self.spool

    def _key(self, cells: Cells) -> Key:
        found = tuple(cells[place] for place in self.table.key_places)
        if None in found or UNCHANGED in found:
            raise ResyncRequired
        return found

    def _completed(self, event: Update, before: Key) -> _Row:
        """The new row; values that the log does not have again come from the row before, as far as it is known."""
        if UNCHANGED not in event.new:
            return _Row(event.new)
        known = self._rows.get(before)
        if known is None:
            if self.is_truncated or self.spool.is_split or self.spool.rows:
                raise ResyncRequired  # the row before may be among those that were put aside
            return _Row(event.new, before)
        if known.cells is None:
            raise ResyncRequired
        pairs = zip(event.new, known.cells, strict=True)
        cells = tuple(old if new is UNCHANGED else new for new, old in pairs)
        return _Row(cells, known.was if UNCHANGED in cells else None)

    def _put(self, key: Key, row: _Row) -> None:
        self._rows[key] = row
        self._bytes += _size(row.cells or key)
        if self.spool.wants(len(self._rows), self._bytes):
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        nothing: Cells = (None,) * len(self.table.columns)
        keys, rows = list(self._rows), list(self._rows.values())
        full = [
            self._of_key(key, nothing) if row.cells is None else row.cells for key, row in zip(keys, rows, strict=True)
        ]
        columns = dict(zip(self.table.records.names, _stored(self.table, full), strict=True))
        count = len(rows)
        columns[ORDER] = pa.array([self._parts] * count, pa.int64())
        columns[GONE] = pa.array([row.cells is None for row in rows], pa.bool_())
        columns[KEPT] = pa.array([_kept(row) for row in rows], pa.string())
        columns[WAS] = self._was(rows, nothing)
        self.spool.add(pa.table(columns))
        self._rows, self._bytes, self._parts = {}, 0, self._parts + 1

    def _of_key(self, key: Key, nothing: Cells) -> Cells:
        cells = list(nothing)
        for place, value in zip(self.table.key_places, key, strict=True):
            cells[place] = value
        return tuple(cells)

    def _was(self, rows: Sequence[_Row], nothing: Cells) -> pa.StructArray:
        columns = _stored(self.table, [nothing if row.was is None else self._of_key(row.was, nothing) for row in rows])
        types = {column.name: arrow_type(column.spark) for column in self.table.columns}
        names = self.table.key
        parts = [columns[place].combine_chunks() for place in self.table.key_places]
        arrays = [part if isinstance(part, pa.Array) else part.chunk(0) for part in parts]
        return pa.StructArray.from_arrays(arrays, fields=[pa.field(name, types[name]) for name in names])


def _kept(row: _Row) -> str | None:
    """The places of the columns that are those of the stored row."""
    if row.was is None or row.cells is None:
        return None
    return "".join(f",{place}" for place, cell in enumerate(row.cells) if cell is UNCHANGED) + ","


@dataclass
class _ByRow:
    table: PostgresTable
    spool: Spool
    is_truncated: bool = False
    _counts: dict[Cells, int] = field(default_factory=dict)
    _bytes: int = 0

    def expect(self, relation: Relation) -> None:
        _expect(self.table, relation)

    def take(self, event: Insert | Update | Delete) -> None:
        if isinstance(event, Insert):
            self._count(event.new, 1)
            return
        if event.old is None or not event.is_full:
            raise ResyncRequired
        self._count(event.old, -1)
        if isinstance(event, Update):
            pairs = zip(event.new, event.old, strict=True)
            self._count(tuple(old if new is UNCHANGED else new for new, old in pairs), 1)

    def truncate(self) -> None:
        self._counts, self._bytes, self.is_truncated = {}, 0, True
        self.spool.clear()

    def finish(self) -> Spool:
        self._flush()
        return self.spool

    def _count(self, cells: Cells, diff: int) -> None:
        if UNCHANGED in cells:
            raise ResyncRequired
        count = self._counts.get(cells, 0) + diff
        if count:
            self._counts[cells] = count
        else:
            del self._counts[cells]
        self._bytes += _size(cells)
        if self.spool.wants(len(self._counts), self._bytes):
            self._flush()

    def _flush(self) -> None:
        if not self._counts:
            return
        rows = [(cells, count < 0) for cells, count in self._counts.items() for _ in range(abs(count))]
        columns = dict(zip(self.table.records.names, _stored(self.table, [cells for cells, _ in rows]), strict=True))
        columns[GONE] = pa.array([is_gone for _, is_gone in rows], pa.bool_())
        self.spool.add(pa.table(columns))
        self._counts, self._bytes = {}, 0
