"""Rows of a SUBSCRIBE, with Materialize's columns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pyarrow as pa

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.serve.hub import Follower
from dbt_incremental_dd.serve.pgwire.errors import FEATURE, PgError
from dbt_incremental_dd.serve.pgwire.rows import close_shielded
from dbt_incremental_dd.serve.pgwire.statements import Subscribe
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.serve.shielded import wait_until_done
from dbt_incremental_dd.subscribe.chunks import CHUNK_BYTES, chunks
from dbt_incremental_dd.subscribe.selection import Selection
from dbt_incremental_dd.subscribe.shape import STATE, Shape
from dbt_incremental_dd.subscribe.subscription import Batch, Start

_TIMESTAMP = pa.field("mz_timestamp", pa.decimal128(20, 0))
_PROGRESSED = pa.field("mz_progressed", pa.bool_())
_MAX_SHARED_ROWS = 2_000
"""Batches of at most this many rows are shared with other clients; larger ones are split into tables of this size."""
_CHANGES = {DIFF: pa.field("mz_diff", pa.int64()), STATE: pa.field("mz_state", pa.string())}


def target(reader: Reader, statement: Subscribe) -> tuple[Collection, Shape]:
    """The collection to subscribe to, and the shape. Raises what Database.find and Selection raise."""
    selection = None if statement.select is None else Selection(statement.select)
    name = selection.collection if selection else statement.collection
    assert name is not None
    return reader.find(name), Shape(selection, statement.key)


def subscription_schema(reader: Reader, statement: Subscribe) -> pa.Schema:
    """The columns of the subscription's rows. Raises what ``target`` raises."""
    return _schema(reader.schema(*target(reader, statement)), progress=statement.progress)


async def subscribe(reader: Reader, statement: Subscribe) -> SubscriptionRows:
    """Starts a subscription. Raises what ``target`` and Subscription raise."""
    collection, shape = await reader.run(target, reader, statement)
    opening = asyncio.ensure_future(_open(reader, collection, shape, statement))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await wait_until_done(opening)
        if not opening.cancelled() and opening.exception() is None:
            await close_shielded(opening.result())
        raise


async def _open(reader: Reader, collection: Collection, shape: Shape, statement: Subscribe) -> SubscriptionRows:
    stack = contextlib.AsyncExitStack()
    reader.usage.as_of = statement.as_of
    start = Start(statement.as_of, statement.snapshot, statement.up_to)
    follower = await stack.enter_async_context(reader.follow(collection, start, shape))
    try:
        schema = await reader.run(lambda: follower.subscription.schema)
        return SubscriptionRows(stack, follower, collection.name, schema, progress=statement.progress)
    except BaseException:
        await stack.aclose()
        raise


class SubscriptionRows:
    """The snapshot and then the changes. Each time that was present at the start comes by itself; later times that are
    taken late come summed up. With ``progress``, the first row states where the subscription starts, and one follows
    each advance of the frontier."""

    def __init__(
        self, stack: contextlib.AsyncExitStack, follower: Follower, name: str, updates: pa.Schema, *, progress: bool
    ) -> None:
        self.schema = _schema(updates, progress=progress)
        self._stack = stack
        self._follower = follower
        self._name = name
        self._updates_schema = updates
        self._progress = progress
        self._remaining: pa.Table | None = None
        """The rest of the last table."""
        self._upcoming: Iterator[pa.Table] = iter(())
        self.is_shared = False
        self._pending_batch: asyncio.Future[Batch | None] | None = None
        if progress:
            subscription = follower.subscription
            self._remaining = self._progress_row(subscription.at + int(subscription.has_begun))

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while (table := self._next()) is None:
            left = None if deadline is None else max(deadline - loop.time(), 0)
            batch = await self._batch(left)
            if batch is not None:
                self._upcoming = self._tables(batch)
            elif self._follower.subscription.has_ended:
                return None
            elif self._follower.is_over:
                raise PgError("57P01", "the server ends", "SUBSCRIBE again, AS OF the last time.")
            elif deadline is not None and loop.time() >= deadline:
                return self.schema.empty_table()
        if table.num_rows > limit:
            table, self._remaining = table.slice(0, limit), table.slice(limit)
        return table

    def _next(self) -> pa.Table | None:
        left, self._remaining = self._remaining, None
        return next(self._upcoming, None) if left is None else left

    async def _batch(self, timeout: float | None) -> Batch | None:
        """The next batch. If a statement is cancelled while it waits, the next one gets the batch."""
        waits_already = self._pending_batch is not None
        if self._pending_batch is None:
            self._pending_batch = asyncio.ensure_future(self._follower.batch(timeout))
        await asyncio.wait({self._pending_batch}, timeout=timeout if waits_already else None)
        if not self._pending_batch.done():
            return None
        pending, self._pending_batch = self._pending_batch, None
        return pending.result()

    def _tables(self, batch: Batch) -> Iterator[pa.Table]:
        """Tables that are not empty. All clients get the same tables of a small batch."""
        if (
            batch.updates.schema.names != self._updates_schema.names
            or batch.updates.schema.types != self._updates_schema.types
        ):
            raise PgError(FEATURE, f"the columns of {self._name} have changed", "SUBSCRIBE again.")
        self.is_shared = batch.updates.num_rows <= _MAX_SHARED_ROWS and batch.updates.nbytes <= CHUNK_BYTES
        if not self.is_shared:
            return self._chunks(batch)
        key = (SubscriptionRows, batch.after, batch.upper, self._follower.subscription.shape, self._progress)
        made: list[pa.Table] = self._follower.shared.memo.get(key, lambda: list(self._chunks(batch)), _size)
        return iter(made)

    def _chunks(self, batch: Batch) -> Iterator[pa.Table]:
        for chunk in chunks(batch.updates, _MAX_SHARED_ROWS):
            yield self._to_rows(chunk)
        if self._progress:
            yield self._progress_row(batch.upper)

    def _to_rows(self, updates: pa.Table) -> pa.Table:
        names, rows = updates.schema.names, updates.num_rows
        times = updates.column(names.index(TIME)).cast(_TIMESTAMP.type)
        progressed = [pa.array([False] * rows, pa.bool_())] if self._progress else []
        change = updates.column(names.index(STATE if STATE in names else DIFF))
        data = [updates.column(at) for at, name in enumerate(names) if name not in (TIME, DIFF, STATE)]
        return pa.Table.from_arrays([times, *progressed, change, *data], schema=self.schema)

    def _progress_row(self, t: Time) -> pa.Table:
        """A row stating that no more updates come below ``t``."""
        values = [pa.array([t], pa.int64()).cast(_TIMESTAMP.type), pa.array([True])]
        nulls = [pa.nulls(1, field.type) for field in list(self.schema)[2:]]
        return pa.Table.from_arrays([*values, *nulls], schema=self.schema)

    async def close(self) -> None:
        if self._pending_batch is not None:
            self._pending_batch.cancel()
            await wait_until_done(self._pending_batch)
        self._remaining, self._upcoming = None, iter(())
        await self._stack.aclose()


def _size(made: list[pa.Table]) -> int:
    return sum(table.nbytes for table in made)


def _schema(updates: pa.Schema, *, progress: bool) -> pa.Schema:
    change = _CHANGES[STATE if STATE in updates.names else DIFF]
    data = [field.with_nullable(True) for field in updates if field.name not in (TIME, DIFF, STATE)]
    return pa.schema([_TIMESTAMP, *([_PROGRESSED] if progress else []), change, *data])
