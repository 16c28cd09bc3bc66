"""What subscriptions read of a collection: each for itself, or all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dbt_incremental_dd.core.frontier import Frontiers
from dbt_incremental_dd.core.schema import TIME
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.subscribe.memo import Memo
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.trace.arrow_reader import changes, consolidated, contents, log_of
from dbt_incremental_dd.trace.layout import CollectionStore

SHARED_BYTES = 64_000_000
"""Of what the subscriptions to one collection keep for each other."""


class Reads(Protocol):
    """Reading one collection as subscribers get it."""

    def frontiers(self) -> Frontiers:
        """How far the collection has come."""

    def changes(self, after: Time, up_to: Time, shape: Shape, *, at_once: bool) -> pa.Table:
        """The updates with ``after < dd_time <= up_to``, by time; ``at_once``: all summed up at ``up_to``."""

    def contents(self, t: Time, shape: Shape) -> pa.Table:
        """What it holds as of ``t``, as updates of that time."""


@dataclass(frozen=True)
class DirectReads:
    """From the files, whenever it is asked for."""

    place: CollectionStore

    def frontiers(self) -> Frontiers:
        return log_of(self.place).frontiers

    def changes(self, after: Time, up_to: Time, shape: Shape, *, at_once: bool) -> pa.Table:
        updates = changes(self.place, after, up_to)
        return shape.apply(_at(consolidated(updates), up_to) if at_once else updates)

    def contents(self, t: Time, shape: Shape) -> pa.Table:
        return shape.apply(_at(contents(self.place, t), t))


class SharedReads:
    """The same for any number of subscriptions that go by the same steps: one of them reads, and the others get what it
    has read. What is kept is bounded by ``SHARED_BYTES``, whatever their number."""

    def __init__(self, place: CollectionStore) -> None:
        self.place = place
        self.memo = Memo(SHARED_BYTES)
        self._direct = DirectReads(place)
        self._seen = self._direct.frontiers()

    def refresh(self) -> bool:
        """Takes the next step, to where the collection is now; whether there was one to take."""
        found = self._direct.frontiers()
        has_come_further, self._seen = found.upper > self._seen.upper, found
        return has_come_further

    def frontiers(self) -> Frontiers:
        return self._seen

    def changes(self, after: Time, up_to: Time, shape: Shape, *, at_once: bool) -> pa.Table:
        def read() -> pa.Table:
            return self._direct.changes(after, up_to, shape, at_once=at_once)

        return self.memo.get((after, up_to, at_once, shape), read, _bytes)

    def contents(self, t: Time, shape: Shape) -> pa.Table:
        return self.memo.get((None, t, False, shape), lambda: self._direct.contents(t, shape), _bytes)

    def cached(self, after: Time | None, up_to: Time, shape: Shape, *, at_once: bool) -> pa.Table | None:
        """What ``changes``, or with ``after`` None ``contents``, has read for another subscription and would give at
        once; None if it would have to read."""
        return self.memo.find((after, up_to, at_once, shape))


def _at(counted: pa.Table, t: Time) -> pa.Table:
    """Rows with counts in dd_diff as updates of one time."""
    times = pa.array([t] * counted.num_rows, pa.int64())
    return counted.add_column(counted.num_columns - 1, TIME, times)


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes)
