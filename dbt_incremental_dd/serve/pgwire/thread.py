"""A thread of its own for each connection, so that no client waits for what another one has asked DuckDB."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from dbt_incremental_dd.serve.settled import settled

_AGAIN = 0.05
"""Seconds between interruptions of what goes on nevertheless."""

T = TypeVar("T")


class Thread:
    """``interrupt`` makes what runs in it end soon."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pgwire")

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function returns. Whoever cancels it waits until the thread has stopped."""
        work = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await settled(work, self._interrupt, _AGAIN)
            raise

    def close(self) -> None:
        """It takes no more; for when nothing runs in it."""
        self._pool.shutdown(wait=False)
