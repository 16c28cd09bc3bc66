"""Where the rows of a statement come from. Whatever it is, they are taken some at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import pyarrow as pa

from dbt_incremental_dd.query.session import Answer
from dbt_incremental_dd.serve.queries import Queries
from dbt_incremental_dd.serve.settled import settled


class Rows(Protocol):
    """Belong to one event loop."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    @property
    def is_shared(self) -> bool:
        """Whether other clients get the very same tables as those that are taken now; they are small."""

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        """At most ``limit`` rows; None where there are no more. Waits until there is at least one; for a subscription
        at most ``timeout`` seconds (None: ever), and then gives none of them."""

    async def close(self) -> None:
        """No more are taken."""


async def closed(rows: Rows) -> None:
    """Closes them, to the end also where whoever waits for it is cancelled."""
    closing = asyncio.ensure_future(rows.close())
    await settled(closing)
    closing.result()


class Made:
    """Rows that are there already."""

    is_shared = False

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self._left = table

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        if not self._left.num_rows:
            return None
        taken, self._left = self._left.slice(0, limit), self._left.slice(limit)
        return taken

    async def close(self) -> None:
        pass


class Selected:
    """Rows of a SELECT, as DuckDB makes them."""

    is_shared = False

    def __init__(self, queries: Queries, answer: Answer) -> None:
        self.schema = answer.schema
        self._queries = queries
        self._answer = answer
        self._left: pa.Table | None = None

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        while self._left is None or not self._left.num_rows:
            batch: Any = await self._queries.proceed(self._answer.interrupt, next, self._answer.batches, None)
            if batch is None:
                return None
            self._left = pa.Table.from_batches([batch])
        taken, self._left = self._left.slice(0, limit), self._left.slice(limit)
        return taken

    async def close(self) -> None:
        await asyncio.to_thread(self._answer.close)


class Fetched:
    """Some of the rows of a cursor, which stays open. ``count``: None for all that there are."""

    def __init__(self, rows: Rows, count: int | None, timeout: float | None) -> None:
        self._rows = rows
        self._left = count
        self._timeout = timeout

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    @property
    def is_shared(self) -> bool:
        return self._rows.is_shared

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        if self._left == 0:
            return None
        taken = await self._rows.take(limit if self._left is None else min(limit, self._left), self._timeout)
        if taken is None or not taken.num_rows:
            self._left = 0
            return None
        # Only the first row is waited for.
        self._timeout = 0
        if self._left is not None:
            self._left -= taken.num_rows
        return taken

    async def close(self) -> None:
        pass
