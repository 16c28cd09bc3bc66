"""Work that runs to its end even if the task that awaits it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_shielded(coroutine: Coroutine[Any, Any, T]) -> T:
    """Awaits a coroutine and returns its result. If the caller is cancelled, waits for the coroutine to end first."""
    work = asyncio.ensure_future(coroutine)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await wait_until_done(work)
        raise


async def wait_until_done(
    work: asyncio.Future[Any], on_tick: Callable[[], None] | None = None, every: float | None = None
) -> None:
    """Waits until ``work`` is done; until then calls ``on_tick`` every ``every`` seconds. Raises CancelledError
    afterwards if the caller was cancelled meanwhile, but never what ``work`` raises."""
    is_canceled = False
    while not work.done():
        if on_tick is not None:
            on_tick()
        try:
            await asyncio.wait({work}, timeout=every)
        except asyncio.CancelledError:
            is_canceled = True
    if not work.cancelled():
        work.exception()
    if is_canceled:
        raise asyncio.CancelledError
