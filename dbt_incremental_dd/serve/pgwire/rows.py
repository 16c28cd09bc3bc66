"""The rows of a statement, taken a number at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import pyarrow as pa

from dbt_incremental_dd.query.engine import QueryResult
from dbt_incremental_dd.serve.query_pool import QueryPool
from dbt_incremental_dd.serve.shielded import wait_until_done


class RowStream(Protocol):
    """A source of rows; belongs to one event loop."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    @property
    def is_shared(self) -> bool:
        """Whether other clients get the same tables as the one taken last; such tables are small."""

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        """At most ``limit`` rows; None after the last one. Waits for at least one row; a subscription waits at most
        ``timeout`` seconds (None: no limit), and then returns an empty table."""

    async def close(self) -> None:
        """Releases what the rows are computed from."""


async def close_shielded(rows: RowStream) -> None:
    """Closes the rows, even if the caller is cancelled."""
    closing = asyncio.ensure_future(rows.close())
    await wait_until_done(closing)
    closing.result()


class TableRows:
    """The rows of a table."""

    is_shared = False

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self._remaining = table

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        if not self._remaining.num_rows:
            return None
        rows, self._remaining = self._remaining.slice(0, limit), self._remaining.slice(limit)
        return rows

    async def close(self) -> None:
        pass


class QueryRows:
    """The rows of a SELECT, as DuckDB computes them."""

    is_shared = False

    def __init__(self, queries: QueryPool, answer: QueryResult) -> None:
        self.schema = answer.schema
        self._queries = queries
        self._answer = answer
        self._remaining: pa.Table | None = None

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        while self._remaining is None or not self._remaining.num_rows:
            batch: Any = await self._queries.proceed(self._answer.interrupt, next, self._answer.batches, None)
            if batch is None:
                return None
            self._remaining = pa.Table.from_batches([batch])
        rows, self._remaining = self._remaining.slice(0, limit), self._remaining.slice(limit)
        return rows

    async def close(self) -> None:
        await asyncio.to_thread(self._answer.close)


class FetchedRows:
    """Some rows of a cursor, which stays open. ``count``: their number; None for all."""

    def __init__(self, rows: RowStream, count: int | None, timeout: float | None) -> None:
        self._rows = rows
        self._remaining = count
        self._timeout = timeout

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    @property
    def is_shared(self) -> bool:
        return self._rows.is_shared

    async def take(self, limit: int, timeout: float | None = None) -> pa.Table | None:
        if self._remaining == 0:
            return None
        rows = await self._rows.take(limit if self._remaining is None else min(limit, self._remaining), self._timeout)
        if rows is None or not rows.num_rows:
            self._remaining = 0
            return None
        # Only the first row is waited for.
        self._timeout = 0
        if self._remaining is not None:
            self._remaining -= rows.num_rows
        return rows

    async def close(self) -> None:
        pass
