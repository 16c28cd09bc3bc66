"""All subscriptions of a server. One reader watches each followed collection, however many clients follow it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.cleared_frames import cleared_frames
from dbt_incremental_dd.serve.shielded import run_shielded
from dbt_incremental_dd.subscribe.read_hold import SharedReadHold
from dbt_incremental_dd.subscribe.reads import SharedReads
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import POLL, Batch, ReadStep, Start, Subscription

T = TypeVar("T")
_THREADS = 16
"""Threads that read for subscriptions only, so that these never wait for a query."""
_SNAPSHOTS = 2
"""Snapshots that are read at the same time; each may be large."""


class Hub:
    """Not thread-safe: belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.is_closed = False
        self._followed: dict[str, _FollowedCollection] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="following")
        self._snapshots = asyncio.Semaphore(_SNAPSHOTS)

    def close(self) -> None:
        """Ends all subscriptions. Clients may reconnect to the next server."""
        self.is_closed = True
        for followed in self._followed.values():
            followed.is_over = True
            followed.wake()

    @property
    def followers(self) -> dict[str, int]:
        """The number of followers of each collection."""
        return {name: one.followers for name, one in self._followed.items()}

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls the function in one of the subscriptions' threads, and returns its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def read(self, subscription: Subscription, step: ReadStep) -> pa.Table:
        """The updates that a subscription reads in a step. Raises FrontierError if they have been compacted."""
        if step.after is not None:
            return await self.run(subscription.read, step)
        async with self._snapshots:
            return await self.run(subscription.read, step)

    @contextlib.asynccontextmanager
    async def follow(self, collection: Collection, start: Start, shape: Shape) -> AsyncIterator[Follower]:
        """A new subscription, closed when the block ends. Raises what Subscription raises."""
        followed = await self._join(collection)
        try:
            holder = followed.read_hold.member()

            def begin() -> Subscription:
                made = Subscription(collection.place, start, shape, name=None, reads=followed.shared, holder=holder)
                followed.read_hold.write()
                return made

            try:
                yield Follower(await run_shielded(self.run(begin)), followed)
            finally:
                holder.release()
        finally:
            self._leave(collection.name, followed)

    async def _join(self, collection: Collection) -> _FollowedCollection:
        followed = self._followed.get(collection.name)
        if followed is None or followed.error:
            made = _FollowedCollection(
                self, await self.run(SharedReads, collection.place), SharedReadHold(collection.place)
            )
            followed = self._followed.get(collection.name)
            if followed is None or followed.error:
                followed = self._followed[collection.name] = made
        followed.followers += 1
        if followed.watch_task is None:
            followed.before = followed.shared.frontiers().last
            followed.watch_task = asyncio.create_task(followed.watch())
        return followed

    def _leave(self, name: str, followed: _FollowedCollection) -> None:
        followed.followers -= 1
        if followed.followers == 0:
            followed.read_hold.write()
            if followed.watch_task is not None:
                followed.watch_task.cancel()
            if self._followed.get(name) is followed:
                del self._followed[name]


@dataclass
class _FollowedCollection:
    """A collection with at least one follower; belongs to one event loop."""

    hub: Hub
    shared: SharedReads
    read_hold: SharedReadHold
    advanced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the collection has advanced, and then replaced by a new one."""
    before: int = 0
    """The latest final time before the last advance."""
    error: DifferentialError | None = None
    is_over: bool = False
    followers: int = 0
    watch_task: asyncio.Task[None] | None = None
    reading: dict[tuple[ReadStep, Shape], asyncio.Future[pa.Table]] = field(default_factory=dict)
    """Reads in progress."""

    def wake(self) -> None:
        """Wakes all followers that wait."""
        advanced, self.advanced = self.advanced, asyncio.Event()
        advanced.set()

    async def watch(self) -> None:
        """Polls the collection for all followers, and writes their common read hold."""
        while True:
            await asyncio.sleep(POLL)
            last = self.shared.frontiers().last
            try:
                more = await self.hub.run(self._refresh)
            except DifferentialError as error:
                self.error, more = error, True
            if more:
                self.before = last
                self.wake()
            if self.error:
                return

    def _refresh(self) -> bool:
        self.read_hold.write()
        return self.shared.refresh()

    async def read(self, subscription: Subscription, step: ReadStep) -> pa.Table:
        """The updates that a subscription reads in a step, read once for all followers at the same step. Raises what
        ``Hub.read`` raises."""
        found = self.shared.cached(step.after, step.up_to, subscription.shape, at_once=step.at_once)
        if found is not None:
            return found
        key = step, subscription.shape
        reading = self.reading.get(key)
        if reading is None:
            reading = self.reading[key] = asyncio.ensure_future(self.hub.read(subscription, step))
            reading.add_done_callback(lambda done: self._finish_read(key, done))
        # The read continues for the other followers if one of them is cancelled.
        return await asyncio.shield(reading)

    def _finish_read(self, key: tuple[ReadStep, Shape], done: asyncio.Future[pa.Table]) -> None:
        del self.reading[key]
        if not done.cancelled():
            done.exception()  # raised to those who still wait


class Follower:
    """One subscription of a hub. Updates of several times that it is late for come summed up in one batch."""

    def __init__(self, subscription: Subscription, followed: _FollowedCollection) -> None:
        self.subscription = subscription
        self._followed = followed
        self._has_caught_up = False

    @property
    def shared(self) -> SharedReads:
        """What it shares with the collection's other followers."""
        return self._followed.shared

    @property
    def is_over(self) -> bool:
        """Whether no more batches will come: the subscription has ended, or the server is closing."""
        return self.subscription.has_ended or self._followed.is_over

    async def batch(self, timeout: float | None = None) -> Batch | None:
        """The next batch. Returns None if none comes within ``timeout`` seconds (None: no limit), or if ``is_over``."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not self.is_over:
            advanced = self._followed.advanced
            if self._followed.error:
                raise self._followed.error
            is_late = self._has_caught_up and self.subscription.at < self._followed.before
            step = self.subscription.next_step(at_once=is_late)
            if step is not None:
                with cleared_frames():
                    updates = await self._followed.read(self.subscription, step)
                batch = self.subscription.deliver(step, updates)
                self._has_caught_up |= batch.timestamp >= self._followed.before
                return batch
            if deadline is not None and deadline <= loop.time():
                return None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await advanced.wait()
        return None
