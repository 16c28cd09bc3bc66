"""A subscription to one collection: what it held at a time, then its updates, each time whole and in order.

The meaning of the options is that of Materialize's SUBSCRIBE: AS OF is inclusive, without SNAPSHOT exclusive; UP TO is
exclusive; the snapshot's rows have the time of AS OF.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import TIME
from dbt_incremental_dd.core.time import Time, format_time
from dbt_incremental_dd.subscribe.keeping import Keeping
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.stored import changes, contents, log_of

POLL = 0.05
"""Seconds between looks at a log on which nothing happens; a look costs a file's status."""


@dataclass(frozen=True)
class Start:
    """``as_of``: where it begins (default: the latest final time); ``up_to``: before which it ends. Both in ms."""

    as_of: Time | None = None
    snapshot: bool = True
    up_to: Time | None = None


@dataclass(frozen=True)
class Batch:
    """Updates in non-decreasing time: the visible columns, dd_time, dd_diff. All below ``upper`` has been delivered
    with it, so ``upper - 1`` is where another subscription goes on without a snapshot."""

    updates: pa.Table
    upper: Time


@dataclass
class Subscription:
    """Follows a collection, and holds its history back from compaction as long as it is open.

    Raises FrontierError, naming ``since``, where what it needs has been let go; ConfigError for options that contradict
    each other.
    """

    place: Place
    start: Start = field(default_factory=Start)

    def __post_init__(self) -> None:
        given = self.start
        frontiers = log_of(self.place).frontiers
        self._at: Time = frontiers.last if given.as_of is None else given.as_of
        """Below it, and at it once it has begun, everything has been delivered."""
        self._has_begun = not given.snapshot
        if given.up_to is not None and given.up_to <= self._at:
            raise ConfigError(
                f"a subscription to {self.place.name} from {format_time(self._at)} cannot end before "
                f"{format_time(given.up_to)}",
                "UP TO has to be later than AS OF.",
            )
        if self._at < frontiers.upper:
            frontiers.require(self._at, self.place.name)
        self._keeping = Keeping(self.place)
        self._keeping.at(self._at)

    @property
    def at(self) -> Time:
        """The latest time up to which all has been delivered, once something has."""
        return self._at

    @property
    def has_ended(self) -> bool:
        """Whether UP TO is reached."""
        return self._has_begun and self.start.up_to is not None and self._at >= self.start.up_to - 1

    def poll(self) -> Batch | None:
        """What is new, at once; None where nothing is."""
        if self.has_ended:
            self.close()
            return None
        self._keeping.at(self._at)
        last = log_of(self.place).frontiers.last
        if self.start.up_to is not None:
            last = min(last, self.start.up_to - 1)
        if not self._has_begun:
            return self._begin() if last >= self._at else None
        if last <= self._at:
            return None
        updates = changes(self.place, self._at, last)
        self._at = last
        return Batch(updates, last + 1)

    def _begin(self) -> Batch:
        rows = contents(self.place, self._at)
        times = pa.array([self._at] * rows.num_rows, pa.int64())
        stamped = rows.add_column(rows.num_columns - 1, TIME, times)
        self._has_begun = True
        return Batch(stamped, self._at + 1)

    def close(self) -> None:
        """It reads no more, and holds no history back. A closed one may go on, as long as history is there."""
        self._keeping.end()

    def wait(self, timeout: float | None = None) -> Batch | None:
        """The next batch; None where the subscription has ended, or none has come within ``timeout`` seconds."""
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
            self.close()

    async def __aiter__(self) -> AsyncIterator[Batch]:
        try:
            while not self.has_ended:
                batch = await asyncio.to_thread(self.poll)
                if batch is not None:
                    yield batch
                else:
                    await asyncio.sleep(POLL)
        finally:
            self.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
