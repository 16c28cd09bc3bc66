"""Durability on a local disk: what a commit names is synced before it, and the commit itself before it is reported.

Writers note what they have written; ``settle`` syncs all that was noted, the files before their folders, several at a
time. A collection's commit settles twice: before its log entry is visible, and after. The commits of its inner traces
only note: they count when the collection's own commit names them.

In object storage an object is durable when its request is answered; nothing is done there.
``DBT_DD_DURABLE=0`` turns syncing off: after a power cut the last commits may then be missing or damaged.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from dbt_incremental_dd.storage.object_store import is_remote

_AT_ONCE = 8
_DEEPEST = 7
"""Folders between a file and the state root, at most."""
_TOP = "collections"
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EISDIR)
"""What a file system answers that does not sync folders."""
enabled = os.environ.get("DBT_DD_DURABLE", "1") != "0"

_noted: set[str] = set()
_linked: set[tuple[str, int]] = set()
"""Folders, with their inodes, whose entry in the folder above is on the disk."""
_noting, _settling = threading.Lock(), threading.Lock()


def note(*paths: str) -> None:
    """Files of a local disk that were written, for the next ``settle`` to sync."""
    if enabled:
        with _noting:
            _noted.update(path for path in paths if not is_remote(path))


def settle() -> None:
    """Syncs all that was noted, and waits for who is doing so. Raises OSError if the disk cannot."""
    with _settling:
        with _noting:
            paths = sorted(_noted)
            _noted.clear()
        if not paths:
            return
        made = {link for path in paths for link in _new_folders(os.path.dirname(path))}
        folders = sorted({*map(os.path.dirname, paths), *(os.path.dirname(folder) for folder, _ in made)})
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(sync_file, paths))
                list(pool.map(sync_folder, folders))
        except OSError:
            note(*paths)
            raise
        _linked.update(made)


def sync_file(path: str) -> None:
    """A file that is gone needs no syncing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """The folder's entries: which files it has."""
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _new_folders(folder: str) -> Iterator[tuple[str, int]]:
    """A folder, and those above it up to the state root, whose own entry may not be on the disk; with their inodes."""
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
