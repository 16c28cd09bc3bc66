"""Which arrangements of its inputs a model's run finds keys in, and which ones it asks for.

A collection is sorted by its own key. Keys of another column are spread over all of it, so that a few of them take a
scan. The first run that does so has the collection arranged by that column (``render.arrangement``); each later run of
any model finds its keys there. A model that has found none for a while no longer keeps it up to date.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.manifest import UsedArrangement
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.relation.stored import is_in_few_pages
from dbt_incremental_dd.render.arrangement import Arrangement
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.write import ROWS_PER_GROUP

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context

_IDLE_RUNS = 50
"""Runs without a look-up after which a model gives an arrangement up."""

_Key = tuple[str, str]
"""A collection's name, and a column's."""


class Arrangements:
    """Those of one model in one run. ``needed``: for each collection the columns that the plan reads of it, by name,
    ``dd_time`` and ``dd_diff`` among them."""

    def __init__(self, context: Context, needed: Mapping[str, Schema]) -> None:
        self._context = context
        self._needed = needed
        self._wanted: dict[_Key, Arrangement] = {}
        self._sought: set[_Key] = set()
        self._serving: dict[_Key, bool] = {}
        self._there: dict[str, tuple[CollectionStore, ...]] = {}

    @property
    def sought(self) -> frozenset[_Key]:
        """The arrangements that keys were found in, or would have been with less reading."""
        return frozenset(self._sought)

    def withdraw(self, keys: Iterable[_Key]) -> None:
        """Those are not needed: what was looked for is kept otherwise."""
        for key in keys:
            self._wanted.pop(key, None)
            self._sought.discard(key)

    def column_for(self, log: Log, columns: Iterable[str]) -> str | None:
        """One of the columns by which the collection is arranged; None where it is by none of them."""
        return next((column for column in columns if self._serves(log, column)), None)

    def find(self, log: Log, column: str, values: Sequence[Any]) -> pa.Table | None:
        """All updates of the values up to the run's end; None where the arrangement cannot be read."""
        read = self._context.inputs[log.name]
        found = self._arrangement(log, column).find(values, self._needed[log.name], read.t0, read.t1)
        self._serving[log.name, column] = found is not None
        if found is not None:
            self._sought.add((log.name, column))
        return found

    def note(self, log: Log, keys: Mapping[str, Sequence[Any]], scanned: Sequence[DataFile], found: int) -> None:
        """What was read to find how many rows of the keys: where it was too much, another order is worth while."""
        rows = total_rows(scanned)
        most = self._context.thresholds
        if self._context.from_nothing or rows <= most.arranged_rows or found * most.arranged_share > rows:
            return
        column = max(keys, key=lambda name: len(keys[name]))
        if not self._is_sorted(log, scanned, column, keys[column]):
            self._wanted[log.name, column] = self._arrangement(log, column)
            self._sought.add((log.name, column))

    def advance(self) -> None:
        """Brings what the model uses to the run's end, and has made what has become worth it."""
        used = {(one.collection, one.column): one.idle + 1 for one in self._context.arrangements}
        used |= dict.fromkeys(self._sought, 0)
        used = {key: idle for key, idle in used.items() if key[0] in self._needed and idle <= _IDLE_RUNS}
        for name, column in used:
            read = self._context.inputs[name]
            if (name, column) not in self._wanted:
                self._arrangement(read.log, column).advance(read.t1)
        started = time.monotonic()
        for (name, _), arrangement in self._wanted.items():
            arrangement.make(self._needed[name], self._context.inputs[name].t1)
        self._context.once_seconds += time.monotonic() - started
        self._context.arrangements = tuple(UsedArrangement(*key, idle) for key, idle in sorted(used.items()))

    def _is_sorted(self, log: Log, files: Sequence[DataFile], column: str, values: Sequence[Any]) -> bool:
        """Whether rows of one value are side by side: by the files' bounds, or by the pages of those that are large."""
        if is_sorted_by(files, column):
            return True
        has_pages = any(file.rows > ROWS_PER_GROUP for file in files)
        workspace, needed = self._context.workspace, self._needed[log.name]
        return has_pages and is_in_few_pages(workspace, log, files, needed, column, values)

    def _serves(self, log: Log, column: str) -> bool:
        if self._context.from_nothing:
            return False
        key = log.name, column
        if log.name not in self._there:
            self._there[log.name] = self._context.storage.collection(log.name).arrangements()
        if key not in self._serving:
            arrangement = self._arrangement(log, column)
            t0, columns = self._context.inputs[log.name].t0, self._needed[log.name]
            self._serving[key] = arrangement.place in self._there[log.name] and arrangement.serves(columns, t0)
        return self._serving[key]

    def _arrangement(self, log: Log, column: str) -> Arrangement:
        return Arrangement(self._context.workspace, log, column, self._context.report)


def is_sorted_by(files: Sequence[DataFile], column: str) -> bool:
    """Whether a value of the column is in few of the files, by their bounds; small ones, which are merged some day, do
    not count."""
    files = [file for file in files if file.rows > ROWS_PER_GROUP] or files
    total, among = total_rows(files), 0.0
    for file in files:
        beside = (f.rows for f in files if _meet(f.bounds.get(column), file.bounds.get(column)))
        among += file.rows * sum(beside) / total
    return among < total / 4


def _meet(one: tuple[Any, Any] | None, other: tuple[Any, Any] | None) -> bool:
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])
