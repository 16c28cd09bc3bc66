"""An arrangement: a collection's updates stored once more, sorted by another column than the collection's own.

It belongs to the collection and serves all models that look for keys in it. What it holds follows from the collection
alone, so that whoever needs it first brings it up to date, or makes it anew where it is damaged or was left behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import TIME, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.stored import found_by_keys, in_interval, most_of, read, write
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.files import between, matching
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.tiers import mergeable
from dbt_incremental_dd.trace.write import ROWS_PER_FILE

T = TypeVar("T")


@dataclass(frozen=True)
class Arrangement:
    """The arrangement of a collection, as of ``log``, by a column. ``report`` is told of what takes long."""

    workspace: Workspace
    log: Log
    column: str
    report: Callable[[str], None]

    @property
    def place(self) -> CollectionStore:
        """Where it is stored."""
        return self.workspace.storage.collection(self.log.name).arrangement(self.column)

    def serves(self, columns: Schema, t: Time) -> bool:
        """Whether it has these columns, and contents as of ``t`` and every later time."""
        return _serves(self._stored(), columns, t)

    def find(self, values: Sequence[Any], columns: Schema, t0: Time, t1: Time) -> pa.Table | None:
        """All updates up to ``t1`` with one of these sorted values, after bringing it up to ``t1``.

        None where it no longer serves as of ``t0``, because others have removed it, made it anew or compacted it; or
        where it turns out to be damaged: then it is removed.
        """
        return self._intact(lambda: self._find(values, columns, t0, t1))

    def advance(self, t: Time) -> None:
        """Adds the collection's updates up to ``t``; another writer may be ahead of it. Removes it where it turns out
        to be damaged."""
        self._intact(lambda: self._advance(t))

    def _find(self, values: Sequence[Any], columns: Schema, t0: Time, t1: Time) -> pa.Table | None:
        stored = self._advance(t1)
        if stored is None or not _serves(stored, columns, t0):
            return None
        keys = {self.column: values}
        table = found_by_keys(self.workspace, stored, stored.files, columns, keys, self._reader(stored))
        return None if table is None else table.filter(pc.less_equal(table[TIME], t1))

    def _advance(self, t: Time) -> Log | None:
        """Its log at ``t`` or later; None where it is gone."""
        stored = self._stored()
        if stored is None or not between(self.log.files, stored.frontiers.last, t):
            return stored
        with writing(self.place, self.report):
            stored = self._stored()
            if stored is None or stored.frontiers.last >= t:
                return stored
            if any(self.log.schema.find(column.name) != column for column in stored.schema):
                return None
            try:
                return self._append(stored, t)
            except CommitConflict:
                stored = self._stored()
                if stored is None or stored.frontiers.last < t:
                    raise
                return stored

    def make(self, columns: Schema, t: Time) -> None:
        """Stores all updates up to ``t`` with these columns, and those that others have asked for."""
        self.report(f"{self.log.name} is arranged by {self.column}, too, for keys are looked for in it")
        with writing(self.place, self.report):
            stored = self._stored()
            wanted = {*columns.names, *(stored.schema.names if stored is not None else ())}
            schema = Schema(tuple(column for column in self.log.schema if column.name in wanted))
            files = between(self.log.files, BEGINNING, t)
            rows = self._rows(files, schema, BEGINNING, t)
            written = self._write(rows.in_ranges([self.column], -(-total_rows(files) // ROWS_PER_FILE)), schema)
            reached("arrangement: written")
            log = stored or self._empty(schema)
            since = self.log.frontiers.since
            with contextlib.suppress(CommitConflict):  # another writer has made it
                log.commit(Commit(add=written, upper=t + 1, since=since, schema=schema, replace_all=True))
            reached("arrangement: committed")

    def _append(self, stored: Log, t: Time) -> Log:
        """The log with what is new. Small files are merged by tiers."""
        new = self._rows(between(self.log.files, stored.frontiers.last, t), stored.schema, stored.frontiers.last, t)
        small = mergeable(stored.files) if new.is_local else ()
        if small:
            kept = read(self.workspace, stored.uri, small, stored.schema, most=total_rows(small))
            summed = plus([kept, new])
            assert summed is not None
            new = summed
        written = self._write(new, stored.schema)
        reached("arrangement: written")
        log = stored.commit(Commit(add=written, remove=small, upper=t + 1))
        reached("arrangement: committed")
        return log

    def _rows(self, files: Sequence[DataFile], schema: Schema, after: Time, up_to: Time) -> Relation:
        rows = read(self.workspace, self.log.uri, files, schema, most=most_of(self.workspace, files, schema))
        return in_interval(rows, files, after, up_to)

    def _write(self, rows: Relation, schema: Schema) -> tuple[DataFile, ...]:
        return write(
            rows, self.place.trace_uri, schema, None, bounded=(self.column,), sort_by=(self.column,), by_ranges=False
        )

    def _reader(self, stored: Log) -> Callable[[Sequence[DataFile], Schema, Mapping[str, Sequence[Any]]], pa.Table]:
        def read_matching(files: Sequence[DataFile], columns: Schema, keys: Mapping[str, Sequence[Any]]) -> pa.Table:
            return read_files(self.workspace.storage, stored.uri, matching(files, keys), columns, keys)

        return read_matching

    def _stored(self) -> Log | None:
        """Its log; None where there is none that can be read and goes on to where the collection's history begins."""
        try:
            stored = self.place.log()
        except StateError:
            return None
        is_behind = stored is not None and stored.frontiers.last < self.log.frontiers.since
        return None if is_behind else stored

    def _empty(self, schema: Schema) -> Log:
        """A log to begin with. One that is damaged goes."""
        try:
            return self.place.create(schema)
        except StateError:
            self.place.remove()
            return self.place.create(schema)

    def _intact(self, step: Callable[[], T | None]) -> T | None:
        """The step's result; None where it fails because of what is stored here."""
        try:
            return step()
        except (OSError, pa.ArrowException, StateError) as error:
            if not self._is_damaged():
                return step()  # another model has removed it meanwhile, or made it anew
            self.report(f"{self.place.name} is damaged, and made anew when it is needed: {error}")
            with writing(self.place, self.report):
                self.place.remove()
            return None

    def _is_damaged(self) -> bool:
        try:
            stored = self.place.log()
        except StateError:
            return True
        return stored is not None and damage(self.place.storage, stored, contents=True) is not None


def _serves(stored: Log | None, columns: Schema, t: Time) -> bool:
    if stored is None or stored.frontiers.since > t:
        return False
    return all(stored.schema.find(column.name) == column for column in columns)
