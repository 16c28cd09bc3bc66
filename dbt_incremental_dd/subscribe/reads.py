"""How subscriptions read a collection: each for itself, or all of them together."""

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
"""Bytes that the subscriptions to one collection keep for each other."""


class Reads(Protocol):
    """Reads one collection for subscribers."""

    def frontiers(self) -> Frontiers:
        """The collection's frontiers."""

    def changes(self, after: Time, up_to: Time, shape: Shape, *, at_once: bool) -> pa.Table:
        """The updates with ``after < dd_time <= up_to``, by time, in a subscriber's shape. ``at_once``: summed up at
        ``up_to``."""

    def contents(self, t: Time, shape: Shape) -> pa.Table:
        """The contents as of ``t``, as updates of that time, in a subscriber's shape."""


@dataclass(frozen=True)
class DirectReads:
    """Reads from the files, at every call."""

    place: CollectionStore

    def frontiers(self) -> Frontiers:
        return log_of(self.place).frontiers

    def changes(self, after: Time, up_to: Time, shape: Shape, *, at_once: bool) -> pa.Table:
        updates = changes(self.place, after, up_to)
        return shape.apply(_at(consolidated(updates), up_to) if at_once else updates)

    def contents(self, t: Time, shape: Shape) -> pa.Table:
        return shape.apply(_at(contents(self.place, t), t))


class SharedReads:
    """Reads for any number of subscriptions that move in the same steps: one reads, the others get the same tables.
    ``SHARED_BYTES`` bounds what is kept for all of them."""

    def __init__(self, place: CollectionStore) -> None:
        self.place = place
        self.memo = Memo(SHARED_BYTES)
        self._direct = DirectReads(place)
        self._seen = self._direct.frontiers()

    def refresh(self) -> bool:
        """Moves to the collection's current frontier. Returns whether it has advanced."""
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
        """The table that ``changes`` (or ``contents``, if ``after`` is None) would return, if it has been read already;
        otherwise None."""
        return self.memo.find((after, up_to, at_once, shape))


def _at(counted: pa.Table, t: Time) -> pa.Table:
    """Rows with counts in dd_diff, as updates of time ``t``."""
    times = pa.array([t] * counted.num_rows, pa.int64())
    return counted.add_column(counted.num_columns - 1, TIME, times)


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes)
