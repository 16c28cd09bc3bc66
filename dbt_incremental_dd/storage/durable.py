"""Durability on a local disk: files are synced before the commit that names them, and the commit before it is reported.

Writers note what they have written; ``settle`` syncs all noted files and then their folders, several at a time. A
collection's commit settles twice: before its log entry becomes visible, and after. Commits of its inner traces only
note, because they count once the collection's own commit names them.

An object in object storage is durable once it is written, so nothing is done there. ``DBT_DD_DURABLE=0`` turns syncing
off: the last commits may then be missing or damaged after a power cut.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from dbt_incremental_dd.storage.uris import is_remote

_AT_ONCE = 8
_DEEPEST = 7
"""Maximum number of folders between a file and the state root."""
_TOP = "collections"
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EISDIR)
"""Errors of file systems that cannot sync folders."""
enabled = os.environ.get("DBT_DD_DURABLE", "1") != "0"

_noted: set[str] = set()
_linked: set[tuple[str, int]] = set()
"""Folders, with their inodes, whose entry in the parent folder is synced."""
_unsynced: ContextVar[bool] = ContextVar("unsynced", default=False)
_noting, _settling = threading.Lock(), threading.Lock()


@contextmanager
def unsynced() -> Iterator[None]:
    """What this thread writes inside is not synced: for what may be missing or damaged after a power cut."""
    before = _unsynced.set(True)
    try:
        yield
    finally:
        _unsynced.reset(before)


def note(*paths: str) -> None:
    """Registers local files that were written, for the next ``settle``."""
    if enabled and not _unsynced.get():
        with _noting:
            _noted.update(path for path in paths if not is_remote(path))


def settle() -> None:
    """Syncs all noted files, and waits for a ``settle`` in progress. Raises OSError if syncing fails."""
    if _unsynced.get():
        return
    with _settling:
        with _noting:
            paths = sorted(_noted)
            _noted.clear()
        if not paths:
            return
        made = {link for path in paths for link in _new_folders(os.path.dirname(path))}
        folders = sorted({*map(os.path.dirname, paths), *(os.path.dirname(folder) for folder, _ in made)})
        try:
            list(_pool().map(sync_file, paths))
            list(_pool().map(sync_folder, folders))
        except OSError:
            note(*paths)
            raise
        _linked.update(made)


@cache
def _pool() -> ThreadPoolExecutor:
    """Kept, because a commit syncs a few files only. A forked process has none of its threads, and makes its own."""
    return ThreadPoolExecutor(_AT_ONCE)


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def sync_file(path: str) -> None:
    """Syncs a file. Does nothing if it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Syncs the entries of a folder."""
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _new_folders(folder: str) -> Iterator[tuple[str, int]]:
    """A folder and its parents up to the state root whose own entries may not be synced, with their inodes."""
    for _ in range(_DEEPEST):
        try:
            link = folder, os.stat(folder).st_ino
        except FileNotFoundError:
            return
        if link in _linked:
            return
        yield link
        if os.path.basename(folder) == _TOP:
            return
        folder = os.path.dirname(folder)
