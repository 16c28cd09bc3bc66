"""What transactions do to one table, as net changes: of each key the last row, or of each whole row how often it came
and went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from dbt_incremental_dd.sources.connectors.database_log.cells import UNCHANGED, Cell, Cells
from dbt_incremental_dd.sources.connectors.database_log.errors import ResyncRequired
from dbt_incremental_dd.sources.connectors.database_log.spool import Spool, change_schema
from dbt_incremental_dd.sources.connectors.database_log.table import LogTable
from dbt_incremental_dd.sources.records import GONE, KEPT, ORDER, WAS
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    Key = tuple[Cell, ...]


class Changes(Protocol):
    """Takes what happened to a table's rows, in its order. Raises ResyncRequired where that cannot be told."""

    spool: Spool
    is_truncated: bool

    def insert(self, new: Cells) -> None:
        """A new row."""

    def update(self, old: Cells | None, new: Cells) -> None:
        """Another row in the place of ``old``; with a key None if the key is the same."""

    def delete(self, old: Cells) -> None:
        """A row is gone; with a key, only the key's cells of ``old`` count."""

    def truncate(self) -> None:
        """All rows are gone, those that are stored as well."""

    def finish(self) -> Spool:
        """What is to be taken in."""


def changes(storage: Storage, table: LogTable) -> Changes:
    """None so far."""
    spool = Spool(storage, change_schema(table))
    return _ByKey(table, spool) if table.key else _ByRow(table, spool)


def _merged(new: Cells, old: Cells) -> Cells:
    """The new row, with the old one's values where it says that they are unchanged."""
    return tuple(before if cell is UNCHANGED else cell for cell, before in zip(new, old, strict=True))


def _size(cells: Cells) -> int:
    return sum(len(cell) for cell in cells if isinstance(cell, bytes)) + 16 * len(cells)


def _stored(table: LogTable, rows: Sequence[Cells]) -> list[pa.ChunkedArray]:
    columns: list[list[bytes | None]] = [[] for _ in table.columns]
    for cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell if isinstance(cell, bytes) else None)
    return table.arrays(columns)


@dataclass
class _Row:
    """``cells`` is None of a key that is gone; unchanged ones are those of the stored row with the key ``was``."""

    cells: Cells | None
    was: Key | None = None


@dataclass
class _ByKey:
    table: LogTable
    spool: Spool
    is_truncated: bool = False
    _rows: dict[Key, _Row] = field(default_factory=dict)
    _bytes: int = 0
    _parts: int = 0
    _places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._places = self.table.key_places

    def insert(self, new: Cells) -> None:
        self._put(self._key(new), _Row(new))

    def update(self, old: Cells | None, new: Cells) -> None:
        key = self._key(new)
        before = key if old is None else self._key(old)
        row = self._completed(new, before)
        if before != key:
            self._put(before, _Row(None))
        self._put(key, row)

    def delete(self, old: Cells) -> None:
        self._put(self._key(old), _Row(None))

    def truncate(self) -> None:
        self._rows, self._bytes, self.is_truncated = {}, 0, True
        self.spool.clear()

    def finish(self) -> Spool:
        self._flush()
        return self.spool

    def _key(self, cells: Cells) -> Key:
        found = tuple([cells[place] for place in self._places])
        if None in found or UNCHANGED in found:
            raise ResyncRequired
        return found

    def _completed(self, new: Cells, before: Key) -> _Row:
        """The new row; values that the log does not have again come from the row before, as far as it is known."""
        if UNCHANGED not in new:
            return _Row(new)
        known = self._rows.get(before)
        if known is None:
            if self.is_truncated or self.spool.is_split or self.spool.rows:
                raise ResyncRequired  # the row before may be among those that were put aside
            return _Row(new, before)
        if known.cells is None:
            raise ResyncRequired
        cells = _merged(new, known.cells)
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
        for place, value in zip(self._places, key, strict=True):
            cells[place] = value
        return tuple(cells)

    def _was(self, rows: Sequence[_Row], nothing: Cells) -> pa.StructArray:
        columns = _stored(self.table, [nothing if row.was is None else self._of_key(row.was, nothing) for row in rows])
        types = {column.name: arrow_type(column.spark) for column in self.table.columns}
        names = self.table.key
        parts = [columns[place].combine_chunks() for place in self._places]
        arrays = [part if isinstance(part, pa.Array) else part.chunk(0) for part in parts]
        return pa.StructArray.from_arrays(arrays, fields=[pa.field(name, types[name]) for name in names])


def _kept(row: _Row) -> str | None:
    """The places of the columns that are those of the stored row."""
    if row.was is None or row.cells is None:
        return None
    return "".join(f",{place}" for place, cell in enumerate(row.cells) if cell is UNCHANGED) + ","


@dataclass
class _ByRow:
    table: LogTable
    spool: Spool
    is_truncated: bool = False
    _counts: dict[Cells, int] = field(default_factory=dict)
    _bytes: int = 0

    def insert(self, new: Cells) -> None:
        self._count(new, 1)

    def update(self, old: Cells | None, new: Cells) -> None:
        if old is None:
            raise ResyncRequired
        self._count(old, -1)
        self._count(_merged(new, old), 1)

    def delete(self, old: Cells) -> None:
        self._count(old, -1)

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
