"""Inner traces: what a model's operators store, as of the model's last output commit.

The output's manifest names the version of each inner log that belongs to it. What lies beyond that version was left
by a run that never committed its output; it is taken back before anything is appended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import DIFF, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import NESTED, VARIANT, VOID
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.local.table import consolidate_arrow
from dbt_incremental_dd.relation.keys import KeyCache, Keys
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.room import files_bytes, room
from dbt_incremental_dd.relation.stored import read, write
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.arrow import arrow_type, is_readable
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.layout import CollectionStore, is_arrangement
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.tiers import has_outgrown, mergeable


class InnerTraces:
    """All inner traces of one model. ``versions`` come from the output's manifest; with ``fresh`` they are ignored."""

    def __init__(
        self,
        workspace: Workspace,
        place: CollectionStore,
        versions: Mapping[str, int],
        *,
        fresh: bool,
        report: Callable[[str], None],
        unbuilt: Iterable[str] = (),
    ) -> None:
        """``unbuilt``: states that are stored nowhere, and are not empty: ``build`` makes one when it is asked for."""
        self._workspace = workspace
        self._place = place
        self._versions = dict(versions)
        self._fresh = fresh
        self._report = report
        self._open: dict[str, InnerTrace] = {}
        self.unbuilt = frozenset() if fresh else frozenset(unbuilt)
        self.build: Callable[[State], Mapping[str, int | None]] | None = None
        """Makes what the state's operator stores, as of when the run began, and gives the states' versions."""

    def from_nothing(self) -> InnerTraces:
        """The same states without anything in them."""
        return InnerTraces(self._workspace, self._place, {}, fresh=True, report=self._report)

    def of(self, state: State) -> InnerTrace:
        """The trace of that state, taken back to where the model's output is; built if it is not yet."""
        if state.name in self.unbuilt:
            assert self.build is not None, "an interval that begins at some time has who builds states"
            made = self.build(state)
            self.unbuilt -= made.keys()
            self._versions |= {name: version for name, version in made.items() if version is not None}
        if state.name not in self._open:
            place = self._place.inner(state.name)
            version = None if self._fresh else self._versions.get(state.name)
            self._open[state.name] = InnerTrace(self._workspace, place, state, version, fresh=self._fresh)
        return self._open[state.name]

    def has(self, name: str) -> bool:
        """Whether the model's last output commit had a state of that name."""
        return not self._fresh and name in self._versions

    def versions(self) -> dict[str, int]:
        """For the manifest of the output commit: each inner log's version as of now. Former versions of this package
        stored arrangements there, which belong to their collections now."""
        opened = {name: trace.version for name, trace in self._open.items() if trace.version is not None}
        kept = {} if self._fresh else {name: v for name, v in self._versions.items() if not is_arrangement(name)}
        return {**kept, **opened}


class InnerTrace:
    """One operator's trace; ``old`` is what it held when the run began."""

    def __init__(
        self, workspace: Workspace, place: CollectionStore, state: State, version: int | None, *, fresh: bool
    ) -> None:
        """``version`` None: the model's last output commit had nothing stored here."""
        self._workspace = workspace
        self._place = place
        self._state = state
        self._from_empty = fresh or version is None
        """Whether what lies here belongs to no output commit; as long as nothing is appended, the trace is empty."""
        self._log = _log(place, is_unneeded=self._from_empty)
        if version is not None and not fresh:
            self._take_back(version)
        self._old: tuple[DataFile, ...] = () if self._from_empty or self._log is None else self._log.files
        self._own: list[pa.Table] | None = []
        """What this run has appended; None where that is not all on the driver."""
        self._found = KeyCache()
        """What the trace held of keys when the run began."""

    @property
    def version(self) -> int | None:
        """The version that holds what this run has appended; None where nothing is stored."""
        return None if self._from_empty or self._log is None else self._log.version

    @property
    def rows(self) -> int:
        """How many updates it held when the run began."""
        return total_rows(self._old)

    def _take_back(self, version: int) -> None:
        if self._log is None or self._log.version < version:
            raise StateError(
                f"inner state {self._place.name} is missing at {self._place.trace_uri}",
                "It is rebuilt by the next run.",
            )
        if self._log.version > version:
            self._log = self._log.holding(self._place.log_at(version).files)
            reached("state: taken back")

    def contents(self, *, new: bool, keys: Keys | None = None, positive: bool = True) -> Relation | None:
        """Its rows (columns and diffs), consolidated; None where it is empty.

        ``new``: with what this run has appended. A restriction by its own columns is exact. ``positive``: whether
        ``dd_diff`` counts rows that are there; sums of differences may be negative.
        """
        log = self._log
        files = log.files if new and log and not self._from_empty else self._old
        if not files or log is None:
            return None
        keys = keys.fitted(log.schema) if keys else None
        files = matching(files, keys.values) if keys else files
        if not files:
            return None
        if total_rows(files) <= self._limit(files, keys) and is_readable(self._data):
            return replace(self._locally(log, files, keys, new=new), positive=positive, consolidated=True)
        rows = read(self._workspace, log.uri, files, self._data, most=0, values=keys.values if keys else None)
        rows = rows if keys is None else keys.restricted(rows)
        estimate = total_rows(files) if keys is None else min(total_rows(files), 4 * keys.estimate)
        one_batch = len({(file.first, file.last) for file in files}) <= 1
        rows = replace(rows, estimate=estimate, positive=positive, consolidated=one_batch)
        return rows.consolidate(self._state.diffs)

    @property
    def _data(self) -> Schema:
        assert self._log is not None
        return Schema(tuple(column for column in self._log.schema if column.name != TIME))

    def _locally(self, log: Log, files: tuple[DataFile, ...], keys: Keys | None, *, new: bool) -> Relation:
        """The same on the driver; of keys that were looked for before only what this run has appended is new."""
        if keys is None or not keys.is_local or (new and self._own is None):
            table = self._read(log, files, keys)
        else:
            table = self._found.of(keys, lambda: self._read(log, matching(self._old, keys.values), keys))
            if new and self._own:
                table = consolidate_arrow(pa.concat_tables([table, *self._own]), self._state.diffs)
        rows = Relation.of(self._workspace, table, self._data)  # of other keys, what this run has appended alone
        return rows if keys is None else keys.restricted(rows)

    def _read(self, log: Log, files: tuple[DataFile, ...], keys: Keys | None) -> pa.Table:
        if not files:
            return pa.schema([(column.name, arrow_type(column.type)) for column in self._data]).empty_table()
        values = keys.values if keys else None
        together = keys.together({id: id for id in keys.columns}) if keys else None
        table = read_files(self._place.storage, log.uri, files, self._data, values, together)
        return consolidate_arrow(table, self._state.diffs)

    def find(self, keys: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Columns and diffs, as they are stored, of rows with one of the sorted values in each of these columns; as of
        when the run began."""
        log, files = self._log, matching(self._old, keys)
        if log is None or not files:
            return pa.schema([(column.name, arrow_type(column.type)) for column in self._data]).empty_table()
        return read_files(self._place.storage, log.uri, files, self._data, keys)

    def append(self, rows: Relation, t: Time) -> Relation:
        """Adds the rows' updates at ``t``, in a fresh trace instead of everything; returns them, read from storage."""
        schema = rows.schema.select((*self._state.columns, *self._state.diffs))
        stored = Schema((*schema.columns, TIME_COLUMN))
        merged = self._mergeable() if rows.is_local and not rows.is_empty else ()
        order, uri = orderable(schema, self._state.arranged_by), self._place.trace_uri
        written = self._with(merged, rows)
        files = write(written, uri, stored, t, bounded=self._bounded(schema), sort_by=order, by_ranges=False)
        log = self._log or self._place.create(stored)
        replace_all = self._from_empty and (self._log is not None or bool(log.files))
        commit = Commit(add=files, remove=merged, manifest=time.time_ns(), schema=stored, replace_all=replace_all)
        reached("state: written")
        self._log = log.commit(commit)
        reached("state: committed")
        self._from_empty = False
        if rows.table is not None:
            self._own = None if self._own is None else [*self._own, rows.table.arrow.select(list(self._data.names))]
            return rows
        self._own = None
        found = read(self._workspace, self._log.uri, files, schema, most=0)
        return replace(found, positive=rows.positive, consolidated=rows.consolidated)

    def _mergeable(self) -> tuple[DataFile, ...]:
        """Small files whose rows are written again with what is appended; all, where they have outgrown the rows."""
        if self._from_empty or self._log is None or not is_readable(self._data):
            return ()
        files = self._log.files
        total, most = total_rows(files), self._workspace.thresholds.built_rows
        has_room = total <= most and files_bytes(files, self._data) <= room()
        return files if has_room and has_outgrown(files) else mergeable(files)

    def _with(self, merged: tuple[DataFile, ...], rows: Relation) -> Relation:
        """The rows, and those of the files, summed up."""
        if not merged or self._log is None:
            return rows
        stored = read(self._workspace, self._log.uri, merged, self._data, most=total_rows(merged))
        own = rows.columns([name for name in self._data.names if name != DIFF])
        summed = plus([stored, own])
        assert summed is not None
        return summed.consolidate(self._state.diffs)

    def _limit(self, files: Sequence[DataFile], keys: Keys | None) -> int:
        """How many stored rows are read on the driver: more where only some of them are kept."""
        most = self._workspace.thresholds
        if keys is None or not keys.values:
            has_room = files_bytes(files, self._data) <= room()
            return max(most.local_rows, self._workspace.most(0) if has_room else 0)
        return most.probed_rows

    def _bounded(self, schema: Schema) -> tuple[str, ...]:
        return tuple(id for id in self._state.arranged_by[:4] if schema.find(id))


def orderable(schema: Schema, columns: tuple[str, ...]) -> list[str]:
    """Those of the columns that files can be sorted by."""
    return [c.name for c in schema.select(columns) if not isinstance(c.type, NESTED) and c.type not in (VARIANT, VOID)]


def _log(place: CollectionStore, *, is_unneeded: bool) -> Log | None:
    """The state's log. Raises StateError where it is damaged; one that is not needed is removed instead."""
    try:
        return place.log()
    except StateError:
        if not is_unneeded:
            raise
        place.remove()
        return None
