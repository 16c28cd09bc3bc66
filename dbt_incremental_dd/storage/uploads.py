"""Objects on their way to a store: written side by side, and awaited by the commit that makes them visible.

As on a disk what was written is synced once, by the commit that names it (``durable``), so it is here: all that belongs
to a collection is below its folder, and its commit awaits that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

_AT_ONCE = 16
_pending: dict[str, Future[None]] = {}
_noting = threading.Lock()


def later(uri: str, write: Callable[[], None]) -> Future[None]:
    """Writes the object in the background. Nobody may read it before ``settle`` has returned, or the result is there,
    which raises what writing has raised."""
    future = _pool().submit(write)
    with _noting:
        _pending[uri] = future
    return future


def aside(write: Callable[[], None]) -> None:
    """Writes an object that nobody waits for, nor misses where that fails."""
    _pool().submit(write)


def settle(folder: str) -> None:
    """Waits for all objects below a folder, or for the object of that URI. Raises what their writing has raised, once:
    the next one finds nothing to wait for."""
    with _noting:
        mine = {uri: future for uri, future in _pending.items() if uri == folder or uri.startswith(f"{folder}/")}
    failed = [error for error in (future.exception() for future in mine.values()) if error is not None]
    with _noting:  # not before: a folder within this one may be waited for by another thread
        for uri in mine:
            _pending.pop(uri, None)
    if failed:
        raise failed[0]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "upload")


def _forget() -> None:
    """A forked process has none of the threads."""
    _pool.cache_clear()
    _pending.clear()


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=_forget)
