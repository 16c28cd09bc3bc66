"""Rows of a SUBSCRIBE, in the columns that Materialize gives them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pyarrow as pa

from dbt_incremental_dd.api import Collection, Database
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.serve.hub import Follower, Hub
from dbt_incremental_dd.serve.messages import BYTES
from dbt_incremental_dd.serve.pgwire.errors import FEATURE, PgError
from dbt_incremental_dd.serve.pgwire.rows import closed
from dbt_incremental_dd.serve.pgwire.statements import Subscribe
from dbt_incremental_dd.serve.settled import settled
from dbt_incremental_dd.subscribe.parts import parts
from dbt_incremental_dd.subscribe.selection import Selection
from dbt_incremental_dd.subscribe.shape import STATE, Shape
from dbt_incremental_dd.subscribe.subscription import Batch, Start
from dbt_incremental_dd.trace.arrow_reader import updates_schema

_TIMESTAMP = pa.field("mz_timestamp", pa.decimal128(20, 0))
_PROGRESSED = pa.field("mz_progressed", pa.bool_())
_SMALL = 2_000
"""Rows of a batch that is kept for others, and of each table otherwise."""
_CHANGES = {DIFF: pa.field("mz_diff", pa.int64()), STATE: pa.field("mz_state", pa.string())}


def target(database: Database, wanted: Subscribe) -> tuple[Collection, Shape]:
    """What is subscribed to. Raises what Database.find and Selection raise."""
    selection = None if wanted.select is None else Selection(wanted.select)
    name = selection.collection if selection else wanted.collection
    assert name is not None
    return database.find(name), Shape(selection, wanted.key)


def described(database: Database, wanted: Subscribe) -> pa.Schema:
    """The columns that it would have. Raises what ``target`` raises."""
    collection, shape = target(database, wanted)
    return _columns(shape.apply(updates_schema(collection.place).empty_table()).schema, progress=wanted.progress)


async def subscribe(hub: Hub, wanted: Subscribe) -> Subscribed:
    """Raises what ``target`` and Subscription raise."""
    collection, shape = await hub.run(target, hub.database, wanted)
    opening = asyncio.ensure_future(_open(hub, collection, shape, wanted))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await settled(opening)
        if not opening.cancelled() and opening.exception() is None:
            await closed(opening.result())
        raise


async def _open(hub: Hub, collection: Collection, shape: Shape, wanted: Subscribe) -> Subscribed:
    stack = contextlib.AsyncExitStack()
    start = Start(wanted.as_of, wanted.snapshot, wanted.up_to)
    follower = await stack.enter_async_context(hub.follow(collection, start, shape))
    try:
        schema = await hub.run(lambda: follower.subscription.schema)
        return Subscribed(stack, follower, collection.name, schema, progress=wanted.progress)
    except BaseException:
        await stack.aclose()
        raise


class Subscribed:
    """Snapshot and changes as they come: each time by itself of what was there when it began; what comes later and is
    taken late comes summed up. With ``progress`` the first row tells where it begins, and one after each step of the
    frontier how far it is."""

    def __init__(
        self, stack: contextlib.AsyncExitStack, follower: Follower, name: str, updates: pa.Schema, *, progress: bool
    ) -> None:
        self.schema = _columns(updates, progress=progress)
        self._stack = stack
        self._follower = follower
        self._name = name
        self._updates = updates
        self._progress = progress
        self._left: pa.Table | None = None
        """Of the table that was taken last."""
        self._coming: Iterator[pa.Table] = iter(())
        self.is_shared = False
        self._asked: asyncio.Future[Batch | None] | None = None
        if progress:
            subscription = follower.subscription
            self._left = self._progressed(subscription.at + int(subscription.has_begun))

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while (table := self._next()) is None:
            left = None if deadline is None else max(deadline - loop.time(), 0)
            batch = await self._batch(left)
            if batch is not None:
                self._coming = self._rows(batch)
            elif self._follower.subscription.has_ended:
                return None
            elif self._follower.is_over:
                raise PgError("57P01", "the server ends", "SUBSCRIBE again, AS OF the last time.")
            elif deadline is not None and loop.time() >= deadline:
                return self.schema.empty_table()
        if table.num_rows > limit:
            table, self._left = table.slice(0, limit), table.slice(limit)
        return table

    def _next(self) -> pa.Table | None:
        left, self._left = self._left, None
        return next(self._coming, None) if left is None else left

    async def _batch(self, timeout: float | None) -> Batch | None:
        """What a statement that has been cancelled waited for is there for the next one."""
        waits_already = self._asked is not None
        if self._asked is None:
            self._asked = asyncio.ensure_future(self._follower.batch(timeout))
        await asyncio.wait({self._asked}, timeout=timeout if waits_already else None)
        if not self._asked.done():
            return None
        asked, self._asked = self._asked, None
        return asked.result()

    def _rows(self, batch: Batch) -> Iterator[pa.Table]:
        """None of them empty. Those of a small batch are the same tables for all that have the same."""
        if batch.updates.schema.names != self._updates.names or batch.updates.schema.types != self._updates.types:
            raise PgError(FEATURE, f"the columns of {self._name} have changed", "SUBSCRIBE again.")
        self.is_shared = batch.updates.num_rows <= _SMALL and batch.updates.nbytes <= BYTES
        if not self.is_shared:
            return self._made(batch)
        key = (Subscribed, batch.after, batch.upper, self._follower.subscription.shape, self._progress)
        made: list[pa.Table] = self._follower.shared.memo.get(key, lambda: list(self._made(batch)), _bytes)
        return iter(made)

    def _made(self, batch: Batch) -> Iterator[pa.Table]:
        for part in parts(batch.updates, _SMALL, BYTES):
            yield self._told(part)
        if self._progress:
            yield self._progressed(batch.upper)

    def _told(self, updates: pa.Table) -> pa.Table:
        names, rows = updates.schema.names, updates.num_rows
        times = updates.column(names.index(TIME)).cast(_TIMESTAMP.type)
        progressed = [pa.array([False] * rows, pa.bool_())] if self._progress else []
        change = updates.column(names.index(STATE if STATE in names else DIFF))
        data = [updates.column(at) for at, name in enumerate(names) if name not in (TIME, DIFF, STATE)]
        return pa.Table.from_arrays([times, *progressed, change, *data], schema=self.schema)

    def _progressed(self, t: Time) -> pa.Table:
        """Nothing more comes below ``t``."""
        told = [pa.array([t], pa.int64()).cast(_TIMESTAMP.type), pa.array([True])]
        nulls = [pa.nulls(1, field.type) for field in list(self.schema)[2:]]
        return pa.Table.from_arrays([*told, *nulls], schema=self.schema)

    async def close(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
            await settled(self._asked)
        self._left, self._coming = None, iter(())
        await self._stack.aclose()


def _bytes(made: list[pa.Table]) -> int:
    return sum(table.nbytes for table in made)


def _columns(updates: pa.Schema, *, progress: bool) -> pa.Schema:
    change = _CHANGES[STATE if STATE in updates.names else DIFF]
    data = [field.with_nullable(True) for field in updates if field.name not in (TIME, DIFF, STATE)]
    return pa.schema([_TIMESTAMP, *([_PROGRESSED] if progress else []), change, *data])
