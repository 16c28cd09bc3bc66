"""Copies on the driver's disk of a state root's data files in object storage.

A data file never changes, and its name is never used again: a copy is right for ever. What the driver writes it copies
first; what others have written it fetches once. So files are read as those of a local disk are: by pages, by DuckDB.
Where a few pages are enough, only they are fetched.

    <folder>/<hash of the root>/collections/<name>/trace/data/<file>
    <folder>/<hash of the root>/collections/<name>/trace/data/<file>.part   the pages of it that were fetched

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from dbt_incremental_dd.storage import downloads, uploads
from dbt_incremental_dd.storage.objects import Objects, objects_of
from dbt_incremental_dd.storage.part_copy import SUFFIX as PART
from dbt_incremental_dd.storage.part_copy import PartCopy

_LOG = logging.getLogger(__name__)
_IN_USE = 600.0
"""Seconds after its last use during which a copy stays: another process may be reading it."""
_BLOCK = 512
"""Bytes, whatever the file system's are."""
_SHARE = 16
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
    _absent: set[str] = field(default_factory=set)
    """Copies of small objects that were not there."""
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
            downloads.all_of(partial(self._fetch, uri, folder, *file) for file in missing)
        return [path for path, _ in missing]

    def parts(self, uri: str, files: Mapping[str, int], beside: str) -> dict[str, PartCopy]:
        """Those of the files below ``uri`` (their paths there, and bytes) of which parts may be fetched: they have no
        copy, but an object beside them, whose name ends so. That is copied. Raises OSError."""
        folder = self.folder_of(uri)
        absent = [path for path, size in files.items() if not self._use(f"{folder}/{path}", size)]
        downloads.all_of(partial(self._fetch_small, uri, f"{path}{beside}") for path in absent)
        there = [path for path in absent if os.path.exists(f"{folder}/{path}{beside}")]
        return {path: self._part(uri, folder, path, files[path]) for path in there}

    def _part(self, uri: str, folder: str, path: str, size: int) -> PartCopy:
        read_whole = partial(self._fetch, uri, folder, path, size)
        return PartCopy(f"{folder}/{path}", size, partial(self._read_range, self._name(uri, path)), read_whole)

    def _name(self, uri: str, path: str) -> str:
        """The object's path within the bucket."""
        return f"{self.prefix}{uri.removeprefix(self.root)}/{path}"

    def _read_range(self, name: str, start: int, end: int) -> bytes:
        self._make_room(end - start)
        return self.objects.read_range(name, start, end)

    def _fetch_small(self, uri: str, path: str) -> None:
        """Makes a copy of an object that has none, if it is there."""
        copy = f"{self.folder_of(uri)}/{path}"
        if copy in self._absent or os.path.exists(copy):
            return
        try:
            data = self.objects.read(self._name(uri, path))
        except FileNotFoundError:
            self._absent.add(copy)
            return
        self._make_room(len(data))
        self._store(copy, data)

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
        data = self.objects.read(self._name(uri, path))
        if len(data) != size:
            raise OSError(f"file {uri}/{path} has {len(data)} of its {size} bytes")
        copy = f"{folder}/{path}"
        self._store(copy, data)
        with contextlib.suppress(OSError):
            os.unlink(f"{copy}{PART}")

    def _store(self, copy: str, data: bytes) -> None:
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
        uploads.later(f"{uri}/{path}", partial(self._upload, uri, path))

    def offered(self, uri: str, path: str) -> None:
        """Stores what was made of a file on this machine, and spares others making it. Nobody waits for that."""
        uploads.aside(partial(self._upload, uri, path))

    def _upload(self, uri: str, path: str) -> None:
        with open(f"{self.folder_of(uri)}/{path}", "rb") as file:
            self.objects.write(self._name(uri, path), file.read())

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
            if not is_first and self._new_bytes * _SHARE < self.most_bytes:
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
    """When each data file was last used, its bytes and paths, with what was made of it: the index of its pages,
    or the part of it that was fetched."""
    found: dict[str, tuple[float, int, list[str]]] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                path = f"{parent}/{name}"
                stat, stem = os.stat(path), path.partition(".parquet")[0]
                used, size, paths = found.get(stem, (0.0, 0, []))
                found[stem] = max(used, stat.st_mtime), size + _bytes(stat), [*paths, path]
    return list(found.values())


def _bytes(stat: os.stat_result) -> int:
    """What a file takes: of a sparse one, what was written."""
    return min(stat.st_size, getattr(stat, "st_blocks", stat.st_size) * _BLOCK)


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
