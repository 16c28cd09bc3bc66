"""Work that goes on to its end, also where whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_shielded(coroutine: Coroutine[Any, Any, T]) -> T:
    """What it returns. Whoever cancels it waits until it is done."""
    work = asyncio.ensure_future(coroutine)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await wait_until_done(work)
        raise


async def wait_until_done(
    work: asyncio.Future[Any], on_tick: Callable[[], None] | None = None, every: float | None = None
) -> None:
    """Waits until it is done, and calls ``again`` every so many seconds before. Raises CancelledError afterwards if
    it has been cancelled meanwhile; never what the work raises."""
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
