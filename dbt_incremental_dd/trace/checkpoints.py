"""When a log gets a checkpoint: one file from which it can be loaded without its entries up to that version."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from dbt_incremental_dd.storage.uris import is_remote

_ON_DISK, _IN_STORE = 50, 10


def checkpoint_interval(uri: str) -> int:
    """Commits between two checkpoints. Reading an entry since the last one takes several requests in object storage."""
    return _IN_STORE if is_remote(uri) else _ON_DISK


def is_due(uri: str, version: int) -> bool:
    """Whether that version gets one."""
    return (version + 1) % checkpoint_interval(uri) == 0


def in_background(work: Callable[[], None]) -> None:
    """Writes what makes loading a log quick, and what nobody waits for."""
    _pool().submit(work)


@cache
def _pool() -> ThreadPoolExecutor:
    """Python waits for it at its end."""
    return ThreadPoolExecutor(2, "checkpoint")


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
