"""The metastore of local sessions is Derby's, which one process at a time can have: others wait for their turn.

A cluster, a Spark Connect server or a metastore of the user's own has no such limit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from dbt_incremental_dd.core import file_lock
from dbt_incremental_dd.core.errors import StateError

LONGEST_WAIT = 1800.0
"""Seconds."""
_held: dict[str, int] = {}
_lock = threading.Lock()


def wait_for(metastore: str, tell: Callable[[str], None]) -> None:
    """Waits until no other process has the metastore in that folder, and keeps it as long as this one lives.

    Raises StateError where that takes longer than half an hour.
    """
    if not file_lock.IS_POSSIBLE:
        return
    with _lock:
        if metastore not in _held:
            _held[metastore] = _acquired(metastore, tell)


def until_free(metastore: str, tell: Callable[[str], None]) -> None:
    """The same, but for another process that has it from then on."""
    if file_lock.IS_POSSIBLE:
        os.close(_acquired(metastore, tell))


def _acquired(metastore: str, tell: Callable[[str], None]) -> int:
    def waiting(holder: str) -> None:
        tell(f"waiting for process {holder}, which has the metastore {metastore}")

    def is_free() -> bool:
        """A JVM may live a little longer than the process that has started it."""
        return not file_lock.is_locked_by_another(f"{metastore}/dbex.lck")

    try:
        return file_lock.acquire(f"{metastore}.lock", LONGEST_WAIT, waiting, is_free)
    except TimeoutError as error:
        raise StateError(
            f"process {error} has had the metastore {metastore} for {LONGEST_WAIT / 60:.0f} minutes",
            "Wait for that run or end it. Runs side by side need Spark Connect, or a metastore of your own.",
        ) from error
