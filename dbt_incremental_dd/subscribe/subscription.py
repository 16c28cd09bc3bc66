"""A subscription to one collection: what it held at a time, then its updates, each time whole and in order.

The meaning of the options is that of Materialize's SUBSCRIBE: AS OF is inclusive, without SNAPSHOT exclusive; UP TO is
exclusive; the snapshot's rows have the time of AS OF.
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
"""Seconds between looks at a log on which nothing happens; a look costs a file's status."""


@dataclass(frozen=True)
class Start:
    """``as_of``: where it begins (default: the latest final time); ``up_to``: before which it ends. Both in ms."""

    as_of: Time | None = None
    snapshot: bool = True
    up_to: Time | None = None


@dataclass(frozen=True)
class Step:
    """What is to be read next: the updates with ``after < dd_time <= up_to``, all summed up at ``up_to`` with
    ``at_once``; or the contents as of ``up_to``, where ``after`` is None."""

    after: Time | None
    up_to: Time
    at_once: bool = False


@dataclass(frozen=True)
class Batch:
    """Updates in non-decreasing time: the visible columns, dd_time, dd_diff (or what the subscription's shape makes of
    them). All below ``upper`` has been delivered with it, and all it holds is above ``after``; a snapshot is above
    nothing."""

    updates: pa.Table
    upper: Time
    after: Time | None

    @property
    def timestamp(self) -> Time:
        """The time that it brings its reader to, and from where another subscription goes on without a snapshot."""
        return self.upper - 1

    @property
    def inserted(self) -> pa.Table:
        """The updates that add rows; not of a subscription by key."""
        return self.updates.filter(pc.greater(self.updates[DIFF], 0))

    @property
    def deleted(self) -> pa.Table:
        """The updates that take rows away, with negative dd_diff; not of a subscription by key."""
        return self.updates.filter(pc.less(self.updates[DIFF], 0))

    def times(self) -> Iterator[Batch]:
        """A batch for each time that it has updates of, and one without updates where it goes further than that."""
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
    """Follows a collection, and holds its history back from compaction as long as it is open.

    With a ``name`` it goes on where the subscription of this name was: behind the batches that had been dealt with when
    the next one was asked for, or when it was closed. It holds history back while it is away.

    Raises FrontierError, naming ``since``, if what it needs has been let go; ConfigError for options that contradict
    each other.
    """

    place: CollectionStore
    start: Start = field(default_factory=Start)
    shape: Shape = field(default_factory=Shape)
    name: str | None = None
    reads: Reads | None = None
    """By default its own, from the files."""
    holder: Holder | None = None
    """By default its own; not with a name."""

    def __post_init__(self) -> None:
        start = self.start
        self._reads = self.reads or DirectReads(self.place)
        self._named = None if self.name is None else ReadHold(self.place, self.name)
        frontiers = self._reads.frontiers()
        remembered = self._named.remembered if self._named and start.as_of is None else None
        begin_at = remembered if remembered is not None else start.as_of
        self._at: Time = frontiers.last if begin_at is None else begin_at
        """Below it, and at it once it has begun, everything has been delivered."""
        self._has_begun = not start.snapshot or remembered is not None
        if start.up_to is not None and start.up_to <= self._at:
            raise ConfigError(
                f"a subscription to {self.place.name} from {format_time(self._at)} cannot end before "
                f"{format_time(start.up_to)}",
                "UP TO has to be later than AS OF.",
            )
        if self._at < frontiers.upper:
            frontiers.require(self._at, self.place.name)
        # What a name remembers is where to go on without a snapshot.
        own = self.holder or ReadHold(self.place)
        self._hold: Holder = self._named if self._named and self._has_begun else own
        self._hold.at(self._at)

    @property
    def at(self) -> Time:
        """The latest time up to which all has been delivered, once something has."""
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
        """What is new; None if nothing is. Whoever asks has dealt with all that came before. ``at_once``: updates
        of several times come summed up at the last of them."""
        step = self.next_step(at_once=at_once)
        return None if step is None else self.delivered(step, self.read(step))

    def next_step(self, *, at_once: bool = False) -> Step | None:
        """What has to be read for the next batch; None if nothing is new. Whoever asks has dealt with all that came
        before."""
        if self.has_ended:
            self.close()
            return None
        self._update_hold()
        last = self._reads.frontiers().last
        if self.start.up_to is not None:
            last = min(last, self.start.up_to - 1)
        if not self._has_begun:
            return Step(None, self._at) if last >= self._at else None
        return Step(self._at, last, at_once) if last > self._at else None

    def read(self, step: Step) -> pa.Table:
        """What a step reads; nothing else moves. Raises FrontierError if that has been let go."""
        if step.after is None:
            return self._reads.contents(step.up_to, self.shape)
        return self._reads.changes(step.after, step.up_to, self.shape, at_once=step.at_once)

    def delivered(self, step: Step, updates: pa.Table) -> Batch:
        """The batch of a step, with what has been read for it."""
        self._has_begun, self._at = True, step.up_to
        return Batch(updates, step.up_to + 1, step.after)

    def _update_hold(self) -> None:
        """History is held from where it is, with its name once it has begun."""
        if self._named and self._has_begun and self._hold is not self._named:
            self._named.at(self._at)
            self._hold.forget()
            self._hold = self._named
        self._hold.at(self._at)

    def close(self) -> None:
        """It reads no more, has dealt with what it has read, and holds no history back unless it has a name. A closed
        one may go on, as long as history is there."""
        if self._has_begun and self._named:
            self._update_hold()
        self._release_hold()

    def _release_hold(self) -> None:
        """It reads no more; one with a name comes back to what it may not have dealt with."""
        if self._hold is not self._named:
            self._hold.forget()

    def forget(self) -> None:
        """It reads no more, and if it has a name will not come back."""
        self._hold.forget()

    def wait(self, timeout: float | None = None) -> Batch | None:
        """The next batch; None if the subscription has ended, or none has come within ``timeout`` seconds."""
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
