"""Objects, and parts of them, that are fetched side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

_AT_ONCE = 32


def all_of(tasks: Iterable[Callable[[], None]]) -> None:
    """Does all the tasks. Raises what one of them has raised. None of them may call this."""
    list(_pool().map(lambda task: task(), tasks))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "download")


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
