"""Copies on the driver's disk of a state root's data files in object storage.

A data file never changes, and its name is never used again: a copy is right for ever. What the driver writes it copies
first; what others have written it fetches once. So files are read as those of a local disk are: by pages, by DuckDB.

    <folder>/<hash of the root>/collections/<name>/trace/data/<file>

All processes of the machine share the folder. It is safe to delete. Copies that were not used for long go first, where
all of them are larger than they may be.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, lru_cache

from dbt_incremental_dd.storage.objects import Objects, objects_of
from dbt_incremental_dd.storage.uploads import later

_LOG = logging.getLogger(__name__)
_AT_ONCE = 16
"""Objects that are fetched concurrently."""
_IN_USE = 600.0
"""Seconds after its last use during which a copy stays: another process may be reading it."""
_PART = 16
"""What is new is looked at again once it is such a part of the limit."""


def default_folder() -> str:
    """Where copies are, unless the environment says otherwise (``DBT_DD_CACHE``): the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("DBT_DD_CACHE") or os.path.join(caches, "dbt_incremental_dd")


@dataclass
class Mirror:
    """The copies of one state root. ``most_bytes``: of all roots' copies; they may take more while they are in use.
    Thread-safe."""

    root: str
    objects: Objects
    prefix: str
    """The root's path within the bucket."""
    most_bytes: int
    folder: str = field(default_factory=default_folder)
    _used: dict[str, float] = field(default_factory=dict)
    """When the use of a copy was last noted on the disk."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _new_bytes: int = -1
    """Since the last look at all copies; -1 before the first one."""

    def folder_of(self, uri: str) -> str:
        """The folder of the copies of a folder under the root."""
        mark = hashlib.sha256(f"{self.objects.name}/{self.prefix}".encode()).hexdigest()[:16]
        return f"{self.folder}/{mark}{uri.removeprefix(self.root)}"

    def fetch(self, uri: str, files: Iterable[tuple[str, int]]) -> list[str]:
        """Makes copies of those files below ``uri`` (their paths there and bytes) that have none; returns the paths of
        these. Raises OSError."""
        folder = self.folder_of(uri)
        missing = [(path, size) for path, size in files if not self._use(f"{folder}/{path}", size)]
        if missing:
            self._make_room(sum(size for _, size in missing))
            list(_pool().map(lambda file: self._fetch(uri, folder, *file), missing))
        return [path for path, _ in missing]

    def _use(self, copy: str, size: int) -> bool:
        """Notes that a copy is used; False if there is none."""
        now = time.monotonic()
        if now - self._used.get(copy, -_IN_USE) < _IN_USE / 2:
            return True
        try:
            if os.stat(copy).st_size != size:
                return False
            os.utime(copy)
        except OSError:
            return False
        self._used[copy] = now
        return True

    def _fetch(self, uri: str, folder: str, path: str, size: int) -> None:
        data = self.objects.read(f"{self.prefix}{uri.removeprefix(self.root)}/{path}")
        if len(data) != size:
            raise OSError(f"file {uri}/{path} has {len(data)} of its {size} bytes")
        copy = f"{folder}/{path}"
        self._make(os.path.dirname(copy))
        part = f"{copy}.{secrets.token_hex(8)}"
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, copy)
        self._used[copy] = time.monotonic()

    def written(self, uri: str, path: str) -> None:
        """Stores a file that was written as a copy. Where that fails, ``uploads.settle`` raises OSError; then the copy
        is of no object, and of no use."""
        copy = f"{self.folder_of(uri)}/{path}"
        self._used[copy] = time.monotonic()
        self._make_room(os.path.getsize(copy))

        def upload() -> None:
            with open(copy, "rb") as file:
                self.objects.write(f"{self.prefix}{uri.removeprefix(self.root)}/{path}", file.read())

        later(f"{uri}/{path}", upload)

    def new_folder(self, uri: str) -> str:
        """The folder of a folder's copies, made where it is missing."""
        folder = self.folder_of(uri)
        self._make(folder)
        return folder

    def _make(self, folder: str) -> None:
        """Nobody else may read the copies."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.makedirs(folder, exist_ok=True)

    def _make_room(self, size: int) -> None:
        """Removes copies, the least recently used first, where all of them are too large."""
        with self._lock:
            is_first = self._new_bytes < 0
            self._new_bytes = max(self._new_bytes, 0) + size
            if not is_first and self._new_bytes * _PART < self.most_bytes:
                return
            self._new_bytes = 0
        copies = sorted(_copies(self.folder))
        total, latest = sum(bytes for _, bytes, _ in copies) + size, time.time() - _IN_USE
        for used, bytes, paths in copies:
            if total <= self.most_bytes or used > latest:
                return
            for path in paths:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                self._used.pop(path, None)
            total -= bytes


def _copies(folder: str) -> list[tuple[float, int, list[str]]]:
    """When each data file was last used, its bytes and path, with what was made of it: the index of its pages."""
    found: dict[str, tuple[float, int, list[str]]] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                path = f"{parent}/{name}"
                stat, stem = os.stat(path), path.partition(".parquet")[0]
                used, size, paths = found.get(stem, (0.0, 0, []))
                found[stem] = max(used, stat.st_mtime), size + stat.st_size, [*paths, path]
    return list(found.values())


@lru_cache(maxsize=16)
def mirror_of(root: str, options: tuple[tuple[str, str], ...], most_bytes: int) -> Mirror | None:
    """The one of a root in this process; None where this user may not write its folder."""
    objects, prefix = objects_of(root, dict(options))
    made = Mirror(root, objects, prefix, most_bytes)
    try:
        made.new_folder(root)
    except OSError as error:
        _LOG.warning("nothing of %s is copied to this machine: %s; set DBT_DD_CACHE to another folder", root, error)
        return None
    return made


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE)


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
