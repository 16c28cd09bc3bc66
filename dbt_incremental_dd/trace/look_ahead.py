"""What runs over object storage ask for, so that the next one asks for all of it at once: logs, small files, folders.

It is noted beside the copies on this machine as the process ends, for the next one. A note that is missing, or of
another project, costs time and nothing else.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache

from dbt_incremental_dd.storage import checked_file

_MOST = 500
"""Logs, small files, folders: the latest ones."""
_AT_ONCE = 48


@dataclass(frozen=True)
class Ahead:
    """What was read before anybody asked for it.

    ``files``: small files by their URI; None: there is none. Each counts once. ``folders``: the names of what is in
    them, by their URI, until this process changes that.
    """

    files: dict[str, bytes | None] = field(default_factory=dict)
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Asked:
    """What was asked for below one root, the latest last. ``note``: a file of this machine. Thread-safe."""

    note: str
    logs: dict[str, str] = field(default_factory=dict)
    """Names by URI."""
    files: dict[str, None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def log(self, uri: str, name: str) -> None:
        """A log was loaded."""
        with self._lock:
            self.logs.pop(uri, None)
            self.logs[uri] = name

    def file(self, uri: str) -> None:
        """A small file was read."""
        with self._lock:
            self.files.pop(uri, None)
            self.files[uri] = None

    def folder(self, uri: str) -> None:
        """A folder was listed."""
        with self._lock:
            self.folders.pop(uri, None)
            self.folders[uri] = None

    def again(
        self,
        load: Callable[[str, str], object],
        read: Callable[[str], bytes],
        names: Callable[[str], tuple[str, ...]],
    ) -> Ahead:
        """Loads the logs (name, URI), reads the files and lists the folders, both of which it returns. What fails is
        left to whoever asks for it."""
        ahead = Ahead()

        def look(name: str, uri: str) -> None:
            with contextlib.suppress(Exception):
                if load(name, uri) is None:  # it is gone; whoever still wants it asks again
                    with self._lock:
                        self.logs.pop(uri, None)

        def get(uri: str) -> None:
            with contextlib.suppress(Exception):
                try:
                    ahead.files[uri] = read(uri)
                except FileNotFoundError:
                    ahead.files[uri] = None

        def list_one(uri: str) -> None:
            with contextlib.suppress(Exception):
                ahead.folders[uri] = names(uri)

        with self._lock:
            logs = list(self.logs.items())[-_MOST:]
            files, folders = list(self.files)[-_MOST:], list(self.folders)[-_MOST:]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for uri in folders:  # fewer of these are answered at once, so they are not left to the end
                pool.submit(list_one, uri)
            for uri, name in logs:
                pool.submit(look, name, uri)
            for uri in files:
                pool.submit(get, uri)
        return ahead

    def keep(self) -> None:
        """Writes the note."""
        with self._lock:
            latest = {"logs": self.logs.items(), "files": self.files, "folders": self.folders}
            text = json.dumps({kind: list(values)[-_MOST:] for kind, values in latest.items()})
        checked_file.write(self.note, text.encode())


@lru_cache(maxsize=64)
def asked_below(note: str) -> Asked:
    """What this process has asked for, and what a former one has noted."""
    made = Asked(note)
    with contextlib.suppress(ValueError, TypeError, KeyError):
        found = json.loads(checked_file.read(note) or b"")
        made.logs = {str(uri): str(name) for uri, name in found["logs"]}
        made.files = dict.fromkeys(map(str, found["files"]))
        made.folders = dict.fromkeys(map(str, found["folders"]))
    atexit.register(made.keep)
    return made
