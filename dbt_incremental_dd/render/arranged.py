"""Large inputs arranged a second time, by a column that a model's run has looked for keys in.

A collection is sorted by its own key. Keys of another column are spread over all of it, so that a few of them take a
scan. The first run that does so stores the columns that the model reads of the input once more, sorted by that column,
as a state of the model's; each later run adds the input's delta, and finds its keys there.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import in_interval, read
from dbt_incremental_dd.render.inner import InnerTrace
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.write import ROWS_PER_FILE, ROWS_PER_GROUP

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context

_PREFIX = "by."


class Arrangements:
    """Those of one model in one run. ``needed``: for each collection the columns that the plan reads of it, by name,
    ``dd_time`` and ``dd_diff`` among them."""

    def __init__(self, context: Context, needed: Mapping[str, Schema]) -> None:
        self._context = context
        self._needed = needed
        self._deltas: dict[str, pa.Table] = {}
        self._wanted: dict[str, tuple[Log, str]] = {}
        self._sought: set[str] = set()

    @property
    def sought(self) -> frozenset[str]:
        """The arrangements that keys were found in, or would have been with less reading."""
        return frozenset(self._sought)

    def withdraw(self, names: Iterable[str]) -> None:
        """Those need not be made: what was looked for is kept otherwise."""
        for name in names:
            self._wanted.pop(name, None)

    def column_for(self, collection: str, columns: Iterable[str]) -> str | None:
        """One of the columns by which the collection is arranged; None where it is by none of them."""
        return next((c for c in columns if self._context.inner.has(_name(collection, c))), None)

    def find(self, log: Log, column: str, values: Sequence[Any]) -> pa.Table:
        """All updates of the values up to the run's end; those before its start carry its time."""
        self._sought.add(_name(log.name, column))
        ids = self._ids(log.name)
        new = self._delta(log)
        new = new.filter(pc.is_in(new[column], value_set=pa.array(values, new.schema.field(column).type)))
        old = self._trace(log.name, column).find({ids[column]: values})
        names = {id: name for name, id in ids.items()}
        old = old.rename_columns([names.get(id, id) for id in old.column_names])
        t0 = pa.scalar(self._context.inputs[log.name].t0, pa.int64())
        old = old.append_column(TIME, pa.repeat(t0, old.num_rows))
        return pa.concat_tables([old.select(new.column_names).cast(new.schema), new])

    def note(self, log: Log, keys: Mapping[str, Sequence[Any]], scanned: Sequence[DataFile], found: int) -> None:
        """What was read to find how many rows of the keys: where it was too much, another order is worth while."""
        rows = total_rows(scanned)
        most = self._context.thresholds
        if self._context.from_nothing or rows <= most.arranged_rows or found * most.arranged_share > rows:
            return
        column = max(keys, key=lambda name: len(keys[name]))
        if not is_sorted_by(scanned, column):
            self._wanted[_name(log.name, column)] = (log, column)
            self._sought.add(_name(log.name, column))

    def advance(self) -> None:
        """Brings what there is to the run's end, and makes what has become worth it."""
        inner = self._context.inner
        for name, needed in self._needed.items():
            read = self._context.inputs[name]
            there = [column for column in needed.names if inner.has(_name(name, column))]
            if there and between(read.log.files, read.t0, read.t1):
                for column in there:
                    self._trace(name, column).append(self._change(read.log), self._context.at)
        started = time.monotonic()
        for log, column in self._wanted.values():
            self._context.report(f"{log.name} is arranged by {column}, too, for keys are looked for in it")
            self._trace(log.name, column).append(self._whole(log, column), self._context.at)
        self._context.once_seconds += time.monotonic() - started

    def _trace(self, collection: str, column: str) -> InnerTrace:
        ids = self._ids(collection)
        return self._context.inner.of(State(_name(collection, column), tuple(ids.values()), (ids[column],)))

    def _ids(self, collection: str) -> dict[str, str]:
        """The columns' names in the state: any name may be theirs."""
        names = [name for name in self._needed[collection].names if name not in (TIME, DIFF)]
        return {name: f"c{i}" for i, name in enumerate(names)}

    def _delta(self, log: Log) -> pa.Table:
        """The collection's updates in the run's interval."""
        if log.name not in self._deltas:
            read = self._context.inputs[log.name]
            files = between(log.files, read.t0, read.t1)
            table = read_files(self._context.storage, log.uri, files, self._needed[log.name])
            inside = pc.and_(pc.greater(table[TIME], read.t0), pc.less_equal(table[TIME], read.t1))
            self._deltas[log.name] = table.filter(inside)
        return self._deltas[log.name]

    def _change(self, log: Log) -> Relation:
        delta = Relation.of(self._context.workspace, self._delta(log), self._needed[log.name])
        return delta.select([(id, name) for name, id in self._ids(log.name).items()])

    def _whole(self, log: Log, column: str) -> Relation:
        ids, t1 = self._ids(log.name), self._context.inputs[log.name].t1
        files = between(log.files, BEGINNING, t1)
        most = self._context.thresholds.built_rows
        rows = read(self._context.workspace, log.uri, files, self._needed[log.name], most=most)
        rows = in_interval(rows, files, BEGINNING, t1).select([(id, name) for name, id in ids.items()])
        return rows.in_ranges([ids[column]], -(-total_rows(files) // ROWS_PER_FILE))


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


def _name(collection: str, column: str) -> str:
    """A name for the state that any file system takes."""
    mark = hashlib.sha256(f"{collection}/{column}".encode()).hexdigest()[:12]
    return f"{_PREFIX}{re.sub('[^a-z0-9_]', '', column.lower())[:40]}.{mark}"
