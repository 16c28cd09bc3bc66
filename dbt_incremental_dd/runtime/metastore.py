"""The metastore of local sessions is Derby's, which one process at a time can have: others wait for their turn.

A cluster, a Spark Connect server or a metastore of the user's own has no such limit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from dbt_incremental_dd.core.errors import StateError

if sys.platform != "win32":
    import fcntl

LONGEST_WAIT = 1800.0
"""Seconds."""
_PAUSE = 0.1
_held: dict[str, int] = {}


def wait_for(metastore: str, tell: Callable[[str], None]) -> None:
    """Waits until no other process has the metastore in that folder, and keeps it as long as this one lives.

    Raises StateError where that takes longer than half an hour.
    """
    if sys.platform == "win32" or metastore in _held:
        return
    descriptor = os.open(f"{metastore}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    started, told = time.monotonic(), False
    while not (_try(descriptor) and not _is_booted(metastore)):
        if time.monotonic() - started > LONGEST_WAIT:
            os.close(descriptor)
            raise StateError(
                f"another process has had the metastore {metastore} for {LONGEST_WAIT / 60:.0f} minutes",
                "Wait for that run or end it. Runs side by side need Spark Connect, or a metastore of your own.",
            )
        if not told and time.monotonic() - started > 1:
            tell(f"waiting for another run, which has the metastore {metastore}")
            told = True
        time.sleep(_PAUSE)
    _held[metastore] = descriptor


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_booted(metastore: str) -> bool:
    """Whether a JVM has it: one may live a little longer than the process that has started it."""
    try:
        descriptor = os.open(f"{metastore}/dbex.lck", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
