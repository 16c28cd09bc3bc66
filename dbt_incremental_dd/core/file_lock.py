"""A file lock of the operating system, which is released when its process ends, however that happens."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

if sys.platform != "win32":
    import fcntl

IS_POSSIBLE = sys.platform != "win32"
_REPORT_SECONDS = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25
"""Seconds."""


def acquire(path: str, longest_wait: float, waiting: Callable[[str], None], is_free: Callable[[], bool]) -> int:
    """Returns a descriptor that has the lock until it is closed. Other descriptors wait, also those of the same
    process.

    ``waiting`` is called once with the holder's process id if it takes more than two seconds. ``is_free`` must hold as
    well. Raises TimeoutError with the holder's process id after ``longest_wait`` seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _wait(descriptor, longest_wait, waiting, is_free)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _wait(descriptor: int, longest: float, waiting: Callable[[str], None], is_free: Callable[[], bool]) -> None:
    started, pause, has_reported = time.monotonic(), _FIRST_PAUSE, False
    while not (_try(descriptor) and is_free()):
        waited = time.monotonic() - started
        holder = os.pread(descriptor, 20, 0).decode(errors="replace") or "another"
        if waited > longest:
            raise TimeoutError(holder)
        if waited > _REPORT_SECONDS and not has_reported:
            waiting(holder)
            has_reported = True
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked_by_another(path: str) -> bool:
    """Whether another process has locked a file by POSIX's ``lockf``, as Java does."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
