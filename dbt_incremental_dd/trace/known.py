"""What is known of a Delta log on a local disk, as long as no commit has come after it.

A commit's file is never changed, so the last one tells whether the log is still the one that was read, and the absence
of the next one that nothing is new.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
_MOST = 2_000
"""Logs that are kept in mind."""


@dataclass(frozen=True)
class _Known(Generic[T]):
    value: T
    version: int
    commit: tuple[int, ...]


class Known(Generic[T]):
    """The last value that was read of each log, by the folder of its table. Threads may share it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known[T]] = OrderedDict()
        self._lock = threading.Lock()

    def newest(self, folder: str) -> T | None:
        """What was read of the log, if that is still all of it."""
        with self._lock:
            known = self._known.get(folder)
        if known is None or _identity(folder, known.version) != known.commit:
            return None
        return None if os.path.exists(_commit(folder, known.version + 1)) else known.value

    def remember(self, folder: str, version: int, value: T) -> None:
        """Keeps what was read of the log's ``version``, if it is on a local disk."""
        commit = None if "://" in folder else _identity(folder, version)
        if commit is None:
            return
        with self._lock:
            self._known[folder] = _Known(value, version, commit)
            self._known.move_to_end(folder)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)


def _commit(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020d}.json"


def _identity(folder: str, version: int) -> tuple[int, ...] | None:
    try:
        found = os.stat(_commit(folder, version))
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
