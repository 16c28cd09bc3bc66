"""Rows that a run has found by key in data files, kept until its end: intakes and models look for the same few keys.

A file never changes. What was found in some files holds for as long as all of them are among those that are searched.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.arrow import arrow_type

Read = Callable[[Sequence[DataFile], Schema, Mapping[str, Sequence[Any]]], pa.Table | None]
"""Finds rows of files by the values of a column; None where they are too many."""

_MOST_BYTES = 256 << 20
"""Of all that is kept."""
_LARGEST_REST = 0.5
"""Of the rows that are searched. Where more of them are in files that were not there before, all are searched."""


@dataclass(frozen=True, eq=False)
class _Found:
    """All rows of the files with one of the values in a column."""

    paths: frozenset[str]
    values: pa.Array
    schema: Schema
    table: pa.Table

    @cached_property
    def bytes(self) -> int:
        """Of the rows."""
        return int(self.table.nbytes)

    def serves(self, paths: frozenset[str], schema: Schema) -> bool:
        return self.paths <= paths and all(self.schema.find(column.name) == column for column in schema)

    def covers(self, values: pa.Array) -> pa.Array:
        """Which of the values it has the rows of."""
        return pc.is_in(values, value_set=self.values)

    def joined(self, other: _Found) -> _Found:
        """With what was found of other values in the same files."""
        values = pa.concat_arrays([self.values, other.values])
        return _Found(self.paths, values, self.schema, pa.concat_tables([self.table, other.table]))


class FoundRows:
    """Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], list[_Found]] = {}

    def knows(self, uri: str, column: str, among: Sequence[Any], files: Sequence[DataFile], schema: Schema) -> bool:
        """Whether it has the rows of all these values."""
        values = _typed(schema, column, among)
        known = self._best(uri, column, values, _paths(files), schema)
        return known is not None and bool(pc.all(known.covers(values)).as_py())

    def rows(
        self, uri: str, column: str, among: Sequence[Any], files: Sequence[DataFile], schema: Schema, read: Read
    ) -> pa.Table | None:
        """All rows of the trace's files with one of these values in the column, which is one of ``schema``; None where
        ``read`` finds too many."""
        values, paths = _typed(schema, column, among), _paths(files)
        known = self._best(uri, column, values, paths, schema)
        known = None if known is None else self._extended(uri, column, known, files, read)
        new = values if known is None else values.filter(pc.invert(known.covers(values)))
        tables = []
        if known is not None:
            tables.append(known.table.filter(pc.is_in(known.table[column], value_set=values)))
        if len(new) or known is None:
            table = read(files, schema, {column: new.to_pylist()})
            if table is None:
                return None
            self._keep(uri, column, _Found(paths, new, schema, table))
            tables.append(table)
        return pa.concat_tables(table.select(list(schema.names)) for table in tables)

    def _best(self, uri: str, column: str, values: pa.Array, paths: frozenset[str], schema: Schema) -> _Found | None:
        """What has the rows of most of the values, if there is any."""
        with self._lock:
            serving = [found for found in self._found.get((uri, column), ()) if found.serves(paths, schema)]
        counted = [(pc.sum(found.covers(values)).as_py() or 0, found) for found in serving]
        count, found = max(counted, key=lambda one: one[0], default=(0, None))
        return found if count else None

    def _extended(self, uri: str, column: str, known: _Found, files: Sequence[DataFile], read: Read) -> _Found | None:
        """With what the files hold that were not there when it was found."""
        rest = [file for file in files if file.path not in known.paths]
        if not rest:
            return known
        if sum(file.rows for file in rest) > _LARGEST_REST * sum(file.rows for file in files):
            return None
        table = read(rest, known.schema, {column: known.values.to_pylist()})
        if table is None:
            return None
        extended = _Found(_paths(files), known.values, known.schema, pa.concat_tables([known.table, table]))
        self._keep(uri, column, extended, instead_of=known)
        return extended

    def _keep(self, uri: str, column: str, found: _Found, instead_of: _Found | None = None) -> None:
        with self._lock:
            kept = self._found.setdefault((uri, column), [])
            if instead_of in kept:
                kept.remove(instead_of)
            same = next((one for one in kept if (one.paths, one.schema) == (found.paths, found.schema)), None)
            if same is not None and not pc.any(same.covers(found.values)).as_py():
                kept.remove(same)
                found = same.joined(found)
            kept.append(found)
            self._bound()

    def _bound(self) -> None:
        """Forgets what is beyond ``_MOST_BYTES``, beginning with the columns that were looked through first."""
        total = sum(one.bytes for kept in self._found.values() for one in kept)
        for kept in self._found.values():
            while kept and total > _MOST_BYTES:
                total -= kept.pop(0).bytes


def _paths(files: Sequence[DataFile]) -> frozenset[str]:
    return frozenset(file.path for file in files)


def _typed(schema: Schema, column: str, values: Sequence[Any]) -> pa.Array:
    return pa.array(values, arrow_type(schema.select((column,)).columns[0].type))
