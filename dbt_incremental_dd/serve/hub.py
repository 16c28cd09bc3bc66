"""All subscriptions of a server: one reader for each collection that is followed, however many follow it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.settled import whole
from dbt_incremental_dd.subscribe.keeping import Together
from dbt_incremental_dd.subscribe.reads import Shared
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import POLL, Batch, Start, Subscription

_SAID_AGAIN = 60.0
"""Seconds after which a follower says where it is also when nothing comes."""


@dataclass
class _Followed:
    """A collection that at least one follows, on one event loop."""

    shared: Shared
    together: Together
    stepped: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is more; a new one each time."""
    before: int = 0
    """The latest final time before the last step."""
    failed: DifferentialError | None = None
    is_over: bool = False
    followers: int = 0
    watching: asyncio.Task[None] | None = None

    def step(self) -> None:
        """Wakes all that wait."""
        stepped, self.stepped = self.stepped, asyncio.Event()
        stepped.set()

    async def watch(self) -> None:
        """Looks for more, for all of them."""
        while True:
            await asyncio.sleep(POLL)
            last = self.shared.frontiers().last
            try:
                more = await asyncio.to_thread(self.shared.look)
            except DifferentialError as error:
                self.failed, more = error, True
            if more:
                self.before = last
                self.step()
            if self.failed:
                return


class Hub:
    """Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.is_closed = False
        self._followed: dict[str, _Followed] = {}

    def close(self) -> None:
        """The server ends: so does all that is followed, and clients that come back find the next one."""
        self.is_closed = True
        for followed in self._followed.values():
            followed.is_over = True
            followed.step()

    @property
    def followers(self) -> dict[str, int]:
        """How many follow each collection."""
        return {name: one.followers for name, one in self._followed.items()}

    @contextlib.asynccontextmanager
    async def follow(self, collection: Collection, start: Start, shape: Shape) -> AsyncIterator[Follower]:
        """A subscription of its own start and shape. Raises what Subscription raises."""
        followed = await self._join(collection)
        try:
            place, shared = followed.shared.place, followed.shared
            holds = followed.together.one()
            try:
                made = await whole(asyncio.to_thread(Subscription, place, start, shape, None, shared, holds))
                yield Follower(made, followed)
            finally:
                holds.forget()
        finally:
            self._leave(collection.name, followed)

    async def _join(self, collection: Collection) -> _Followed:
        followed = self._followed.get(collection.name)
        if followed is None or followed.failed:
            place = collection.place
            made = _Followed(await asyncio.to_thread(Shared, place), Together(place))
            followed = self._followed.get(collection.name)
            if followed is None or followed.failed:
                followed = self._followed[collection.name] = made
        followed.followers += 1
        if followed.watching is None:
            followed.before = followed.shared.frontiers().last
            followed.watching = asyncio.create_task(followed.watch())
        return followed

    def _leave(self, name: str, followed: _Followed) -> None:
        followed.followers -= 1
        if followed.followers == 0:
            if followed.watching is not None:
                followed.watching.cancel()
            if self._followed.get(name) is followed:
                del self._followed[name]


class Follower:
    """One subscription of a hub. What its reader takes late comes summed up in one batch."""

    def __init__(self, subscription: Subscription, followed: _Followed) -> None:
        self.subscription = subscription
        self._followed = followed
        self._has_caught_up = False

    @property
    def shared(self) -> Shared:
        """What it has in common with others."""
        return self._followed.shared

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come: it has ended, or the server does."""
        return self.subscription.has_ended or self._followed.is_over

    async def batch(self, timeout: float | None = None) -> Batch | None:
        """The next batch; None where there is none within ``timeout`` seconds (None: ever), or ``is_over``."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not self.is_over:
            stepped = self._followed.stepped
            if self._followed.failed:
                raise self._followed.failed
            is_late = self._has_caught_up and self.subscription.at < self._followed.before
            batch = await whole(asyncio.to_thread(self.subscription.poll, is_late))
            if batch is not None:
                self._has_caught_up |= batch.timestamp >= self._followed.before
                return batch
            left = _SAID_AGAIN if deadline is None else deadline - loop.time()
            if left <= 0:
                return None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stepped.wait(), min(left, _SAID_AGAIN))
        return None

    async def batches(self) -> AsyncIterator[Batch]:
        """All of them."""
        while (batch := await self.batch()) is not None:
            yield batch
