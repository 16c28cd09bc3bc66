"""Ensures one writer of a collection at a time on a local disk. Elsewhere, the log's compare-and-swap decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dbt_incremental_dd.core import file_lock
from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.trace.layout import CollectionStore

LONGEST_WAIT = 3600.0
"""Seconds."""


@contextmanager
def writing(
    place: CollectionStore, report: Callable[[str], None] = lambda line: None, longest_wait: float = LONGEST_WAIT
) -> Iterator[None]:
    """Locks the collection against other writing processes and threads, and waits for a current one.

    Raises CommitConflict, naming the process, after ``longest_wait`` seconds.
    """
    if not place.storage.is_local or not file_lock.IS_POSSIBLE:
        yield
        return
    folder = f"{place.storage.root}/locks"
    os.makedirs(folder, exist_ok=True)

    def waiting(holder: str) -> None:
        report(f"{place.name}: waiting for process {holder}, which is writing it")

    try:
        descriptor = file_lock.acquire(f"{folder}/{place.folder}", longest_wait, waiting, lambda: True)
    except TimeoutError as error:
        raise CommitConflict(
            f"{place.name} is being written by process {error}, for more than {longest_wait / 60:.0f} minutes",
            "Wait for that run, or end it, and run again. Nothing of this run is visible.",
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)
