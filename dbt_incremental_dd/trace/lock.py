"""One writer of a collection at a time, on a local disk. Elsewhere a log's compare-and-swap decides who comes first.

The lock is the operating system's on a file: it is gone with its process, however that ends.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.trace.layout import Place

if sys.platform != "win32":
    import fcntl

LONGEST_WAIT = 3600.0
"""Seconds."""
_TELL_AFTER = 2.0
_LONGEST_PAUSE = 0.25


@contextmanager
def writing(place: Place, report: Callable[[str], None]) -> Iterator[None]:
    """Keeps other processes and threads from writing the collection; waits for one that does.

    Raises CommitConflict, naming the process, where that takes longer than an hour.
    """
    if not place.storage.is_local or sys.platform == "win32":
        yield
        return
    folder = f"{place.storage.root}/locks"
    os.makedirs(folder, exist_ok=True)
    descriptor = os.open(f"{folder}/{place.folder}", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _acquire(descriptor, place.name, report)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, name: str, report: Callable[[str], None]) -> None:
    started, pause, told = time.monotonic(), 0.005, False
    while not _try(descriptor):
        waited = time.monotonic() - started
        holder = os.pread(descriptor, 20, 0).decode(errors="replace") or "another"
        if waited > LONGEST_WAIT:
            raise CommitConflict(
                f"{name} is being written by process {holder}, for more than {LONGEST_WAIT / 60:.0f} minutes",
                "Wait for that run, or end it, and run again. Nothing of this run is visible.",
            )
        if waited > _TELL_AFTER and not told:
            report(f"{name}: waiting for process {holder}, which is writing it")
            told = True
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
