"""A cache of Delta logs, valid as long as no later commit exists.

A commit's file never changes. Therefore, the identity of the last one shows whether the log is the one that was read,
and the absence of the next one shows that there is nothing new.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import is_remote

T = TypeVar("T")
_MOMENTS = 2.0
"""Seconds."""
_MOST = 2_000
"""Maximum number of logs in the cache."""


@dataclass(frozen=True)
class _Known(Generic[T]):
    value: T
    version: int
    commit: Hashable


class Checked:
    """When one run looked at which log (the folder of its table). Thread-safe."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def add(self, folder: str) -> None:
        """The log is current."""
        self._at[folder] = time.monotonic()

    def has(self, folder: str) -> bool:
        """Whether it was looked at moments ago. What others have committed since makes our commit conflict."""
        return time.monotonic() - self._at.get(folder, -_MOMENTS) < _MOMENTS


class Known(Generic[T]):
    """The last value read of each log, by the folder of its table. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known[T]] = OrderedDict()
        self._lock = threading.Lock()

    def newest(self, folder: str, options: Mapping[str, str], checked: Checked | None = None) -> T | None:
        """The value read of the log if it is current; otherwise None. ``checked``: it is taken to be current where it
        was moments ago."""
        with self._lock:
            known = self._known.get(folder)
        if known is None or (checked is not None and checked.has(folder)):
            return None if known is None else known.value
        try:
            if not _is_newest(folder, known.version, known.commit, options):
                return None
        except OSError:  # unknown, so it is read again
            return None
        if checked is not None:
            checked.add(folder)
        return known.value

    def at(self, folder: str, options: Mapping[str, str], version: int, checked: Checked | None = None) -> T | None:
        """The value read of the log's ``version``, whether or not there is a later one; None if it is not known."""
        with self._lock:
            known = self._known.get(folder)
        if known is None or known.version != version:
            return None
        if checked is not None and checked.has(folder):
            return known.value
        try:
            return known.value if _identity(_commit(folder, version), options) == known.commit else None
        except OSError:
            return None

    def latest(self, folder: str) -> T | None:
        """The value read of the log, whether or not it is current."""
        with self._lock:
            known = self._known.get(folder)
        return None if known is None else known.value

    def clear(self) -> None:
        """Nothing is known, as in a new process."""
        with self._lock:
            self._known.clear()

    def forget(self, folder: str) -> None:
        """The next one to ask reads the log."""
        with self._lock:
            self._known.pop(folder, None)

    def remember(
        self, folder: str, options: Mapping[str, str], version: int, value: T, tag: str | None = None
    ) -> Hashable | None:
        """Caches the value read of the log's ``version``. ``tag``: its commit's entity tag, where it is known. Returns
        what tells this commit from another one; None if it is gone."""
        try:
            commit = tag or _identity(_commit(folder, version), options)
        except OSError:
            return None
        if not commit:
            return None
        with self._lock:
            self._known[folder] = _Known(value, version, commit)
            self._known.move_to_end(folder)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return commit


def _is_newest(folder: str, version: int, commit: Hashable, options: Mapping[str, str]) -> bool:
    """Whether the log ends with this commit. Of an object store one list tells it."""
    if is_remote(folder):
        objects, log = objects_of(f"{folder}/_delta_log", options)
        found = objects.after(log, f"{log}/{version:020d}")
        if f"{log}/{version + 1:020d}.json" in found:
            return False
        if found.get(f"{log}/{version:020d}.json") == commit:
            return True  # otherwise this store's lists may have other tags
    elif _identity(_commit(folder, version + 1), options) is not None:
        return False
    return _identity(_commit(folder, version), options) == commit


def _commit(folder: str, version: int) -> str:
    return f"{folder}/_delta_log/{version:020d}.json"


def _identity(path: str, options: Mapping[str, str]) -> Hashable | None:
    """A value that distinguishes the file from another one of the same name, empty if there is none; None if the file
    does not exist."""
    try:
        return _tag(path, options) if is_remote(path) else _node(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _node(found: os.stat_result) -> Hashable:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _tag(path: str, options: Mapping[str, str]) -> Hashable:
    """An object's entity tag, with one request."""
    objects, name = objects_of(path, options)
    return objects.tag(name)
