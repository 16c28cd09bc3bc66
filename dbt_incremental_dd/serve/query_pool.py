"""The SELECTs of all clients of a server, in threads of their own, so that neither subscriptions nor other clients wait
for a statement. Clients with equal rights share a query engine."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dbt_incremental_dd.core.errors import ServerBusy
from dbt_incremental_dd.core.rights import EVERYTHING, Rights
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.serve.shielded import wait_until_done
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.untrusted.limits import Limits, Watchdog

_MAX_ENGINES = 16
"""Engines that are kept, those used last; each has threads and views of its own."""
_INTERRUPT_SECONDS = 0.05
"""Interval at which a cancelled statement that still runs is interrupted again."""

T = TypeVar("T")


class QueryPool:
    """Belongs to one event loop. Engines and threads start with the first statement."""

    def __init__(self, storage: Storage, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._storage = storage
        self._watchdog = Watchdog(self.limits.bytes)
        self._engines: OrderedDict[Rights, QueryEngine] = OrderedDict()
        self._pool = ThreadPoolExecutor(self.limits.at_once, thread_name_prefix="query")
        self._max_pending = self.limits.at_once + self.limits.waiting
        self._pending = 0

    def session(self, rights: Rights = EVERYTHING) -> Session:
        """A session for one client, over the engine of its rights. Statements that run keep theirs."""
        engine = self._engines.get(rights)
        if engine is None:
            engine = self._engines[rights] = QueryEngine(self._storage, self.limits, rights, self._watchdog)
            if len(self._engines) > _MAX_ENGINES:
                self._engines.popitem(last=False)
        self._engines.move_to_end(rights)
        return Session(engine)

    async def begin(self, interrupt: Callable[[], None], function: Callable[..., T], *arguments: Any) -> T:
        """Runs a function that starts a statement, and returns its result. If the caller is cancelled, the statement is
        stopped by ``interrupt``, and the cancellation waits for that. Raises ServerBusy if too many statements are
        waiting."""
        if self._pending >= self._max_pending:
            raise ServerBusy(
                f"the server runs or queues {self._pending} statements, and accepts no more",
                "Try again later.",
            )
        return await self.proceed(interrupt, function, *arguments)

    async def proceed(self, interrupt: Callable[[], None], function: Callable[..., T], *arguments: Any) -> T:
        """As ``begin``, for a statement that has been started already; never refused."""
        submitted = self._pool.submit(function, *arguments)
        self._pending += 1
        work = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not submitted.cancel():
                await wait_until_done(work, interrupt, _INTERRUPT_SECONDS)
            raise
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Shuts the pool down. Call it when nothing runs."""
        self._pool.shutdown(wait=False)
        for engine in self._engines.values():
            engine.close()
