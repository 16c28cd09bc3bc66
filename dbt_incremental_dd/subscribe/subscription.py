"""A subscription to one collection: its contents as of a time, then its updates in order, each time complete.

The options mean the same as those of Materialize's SUBSCRIBE: AS OF is inclusive, or exclusive without SNAPSHOT; UP TO
is exclusive; the snapshot's rows have the time of AS OF.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import Time, format_time
from dbt_incremental_dd.subscribe.read_hold import Holder, ReadHold
from dbt_incremental_dd.subscribe.reads import DirectReads, Reads
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.trace.arrow_reader import updates_schema
from dbt_incremental_dd.trace.layout import CollectionStore

POLL = 0.05
"""Interval at which a quiet log is polled; a poll reads one file's status."""


@dataclass(frozen=True)
class Start:
    """``as_of``: where the subscription starts (default: the latest final time). ``up_to``: where it ends, exclusive.
    Both in ms."""

    as_of: Time | None = None
    snapshot: bool = True
    up_to: Time | None = None


@dataclass(frozen=True)
class ReadStep:
    """The next read: the updates with ``after < dd_time <= up_to``, summed up at ``up_to`` if ``at_once``; or the
    contents as of ``up_to`` if ``after`` is None."""

    after: Time | None
    up_to: Time
    at_once: bool = False


@dataclass(frozen=True)
class Batch:
    """Updates in non-decreasing time: the visible columns, dd_time and dd_diff, in the subscription's shape. They are
    all updates above ``after`` and below ``upper`` (ms); a snapshot's ``after`` is None."""

    updates: pa.Table
    upper: Time
    after: Time | None

    @property
    def timestamp(self) -> Time:
        """The time (ms) up to which the subscriber has everything. Another subscription can continue from it without a
        snapshot."""
        return self.upper - 1

    @property
    def inserted(self) -> pa.Table:
        """The updates that add rows; not for a subscription with a key."""
        return self.updates.filter(pc.greater(self.updates[DIFF], 0))

    @property
    def deleted(self) -> pa.Table:
        """The updates that remove rows, with negative dd_diff; not for a subscription with a key."""
        return self.updates.filter(pc.less(self.updates[DIFF], 0))

    def times(self) -> Iterator[Batch]:
        """A batch for each time that has updates, and an empty one if the batch advances beyond the last of them."""
        updates, after, begin = self.updates, self.after, 0
        ends = pc.run_end_encode(updates[TIME].combine_chunks()).run_ends.to_pylist() if updates.num_rows else []
        for end in ends:
            t = updates[TIME][begin].as_py()
            yield Batch(updates.slice(begin, end - begin), t + 1, after)
            begin, after = end, t
        if not ends or after != self.timestamp:
            yield Batch(updates.slice(updates.num_rows), self.upper, after)


@dataclass
class Subscription:
    """Follows a collection, and holds its history back from compaction while it is open.

    With a ``name`` it continues the subscription of this name, after the batches that were processed when it requested
    the next one or was closed. A named subscription holds history back while it is away.

    Raises FrontierError, naming ``since``, if the history that it needs has been compacted; ConfigError for
    contradicting options.
    """

    place: CollectionStore
    start: Start = field(default_factory=Start)
    shape: Shape = field(default_factory=Shape)
    name: str | None = None
    reads: Reads | None = None
    """By default, it reads from the files for itself."""
    holder: Holder | None = None
    """By default, it has a hold of its own. Not allowed with a name."""

    def __post_init__(self) -> None:
        start = self.start
        self._reads = self.reads or DirectReads(self.place)
        self._named = None if self.name is None else ReadHold(self.place, self.name)
        frontiers = self._reads.frontiers()
        remembered = self._named.remembered if self._named and start.as_of is None else None
        begin_at = remembered if remembered is not None else start.as_of
        self._at: Time = frontiers.last if begin_at is None else begin_at
        """Everything below this time has been delivered, and once it has begun also everything at it."""
        self._has_begun = not start.snapshot or remembered is not None
        if start.up_to is not None and start.up_to <= self._at:
            raise ConfigError(
                f"a subscription to {self.place.name} from {format_time(self._at)} cannot end before "
                f"{format_time(start.up_to)}",
                "UP TO has to be later than AS OF.",
            )
        if self._at < frontiers.upper:
            frontiers.require(self._at, self.place.name)
        # A name stores a position from which to continue without a snapshot.
        own = self.holder or ReadHold(self.place)
        self._hold: Holder = self._named if self._named and self._has_begun else own
        self._hold.advance_to(self._at)

    @property
    def at(self) -> Time:
        """The latest time (ms) up to which everything has been delivered, once it has begun."""
        return self._at

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of its batches."""
        return self.shape.apply(updates_schema(self.place).empty_table()).schema

    @property
    def has_begun(self) -> bool:
        """Whether the snapshot has been delivered, or there is none to deliver."""
        return self._has_begun

    @property
    def has_ended(self) -> bool:
        """Whether UP TO is reached."""
        return self._has_begun and self.start.up_to is not None and self._at >= self.start.up_to - 1

    def poll(self, *, at_once: bool = False) -> Batch | None:
        """The next batch; None if nothing is new. A call confirms that all earlier batches have been processed.
        ``at_once``: sums updates of several times up at the last one."""
        step = self.next_step(at_once=at_once)
        return None if step is None else self.deliver(step, self.read(step))

    def next_step(self, *, at_once: bool = False) -> ReadStep | None:
        """The read for the next batch; None if nothing is new. A call confirms that all earlier batches have been
        processed."""
        if self.has_ended:
            self.close()
            return None
        self._update_hold()
        last = self._reads.frontiers().last
        if self.start.up_to is not None:
            last = min(last, self.start.up_to - 1)
        if not self._has_begun:
            return ReadStep(None, self._at) if last >= self._at else None
        return ReadStep(self._at, last, at_once) if last > self._at else None

    def read(self, step: ReadStep) -> pa.Table:
        """Reads a step, without moving the subscription. Raises FrontierError if the updates have been compacted."""
        if step.after is None:
            return self._reads.contents(step.up_to, self.shape)
        return self._reads.changes(step.after, step.up_to, self.shape, at_once=step.at_once)

    def deliver(self, step: ReadStep, updates: pa.Table) -> Batch:
        """The batch of a step whose updates have been read. Moves the subscription."""
        self._has_begun, self._at = True, step.up_to
        return Batch(updates, step.up_to + 1, step.after)

    def _update_hold(self) -> None:
        """Holds history from the current position on, by name once it has begun."""
        if self._named and self._has_begun and self._hold is not self._named:
            self._named.advance_to(self._at)
            self._hold.release()
            self._hold = self._named
        self._hold.advance_to(self._at)

    def close(self) -> None:
        """Confirms all batches and ends the hold, except a named one. A closed subscription can be continued as long as
        the history is there."""
        if self._has_begun and self._named:
            self._update_hold()
        self._release_hold()

    def _release_hold(self) -> None:
        """Ends the hold, except a named one, without confirming the last batch."""
        if self._hold is not self._named:
            self._hold.release()

    def forget(self) -> None:
        """Ends the hold, also a named one, which cannot be continued then."""
        self._hold.release()

    def wait(self, timeout: float | None = None) -> Batch | None:
        """The next batch. Returns None if the subscription has ended, or if none comes within ``timeout`` seconds
        (None: no limit)."""
        deadline = None if timeout is None else clock.monotonic() + timeout
        while not self.has_ended:
            batch = self.poll()
            if batch is not None:
                return batch
            if deadline is not None and clock.monotonic() >= deadline:
                return None
            clock.sleep(POLL if deadline is None else min(POLL, max(deadline - clock.monotonic(), 0)))
        self.close()
        return None

    def __iter__(self) -> Iterator[Batch]:
        try:
            while (batch := self.wait()) is not None:
                yield batch
        finally:
            self._release_hold()

    async def __aiter__(self) -> AsyncIterator[Batch]:
        try:
            while not self.has_ended:
                batch = await asyncio.to_thread(self.poll)
                if batch is not None:
                    yield batch
                else:
                    await asyncio.sleep(POLL)
            self.close()
        finally:
            self._release_hold()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._release_hold()
