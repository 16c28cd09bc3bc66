"""What runs over object storage ask for, so that the next one asks for all of it at once: logs, and small files.

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
"""Logs, and small files: the latest ones."""
_AT_ONCE = 32


@dataclass
class Asked:
    """What was asked for below one root, the latest last. ``note``: a file of this machine. Thread-safe."""

    note: str
    logs: dict[str, str] = field(default_factory=dict)
    """Names by URI."""
    files: dict[str, None] = field(default_factory=dict)
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

    def again(self, load: Callable[[str, str], object], read: Callable[[str], bytes]) -> dict[str, bytes | None]:
        """Loads the logs (name, URI), and reads the files, which it returns; None for one that is not there. What fails
        is left to whoever asks for it."""
        found: dict[str, bytes | None] = {}

        def look(name: str, uri: str) -> None:
            with contextlib.suppress(Exception):
                load(name, uri)

        def get(uri: str) -> None:
            with contextlib.suppress(Exception):
                try:
                    found[uri] = read(uri)
                except FileNotFoundError:
                    found[uri] = None

        with self._lock:
            logs, files = list(self.logs.items())[-_MOST:], list(self.files)[-_MOST:]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for uri, name in logs:
                pool.submit(look, name, uri)
            for uri in files:
                pool.submit(get, uri)
        return found

    def keep(self) -> None:
        """Writes the note."""
        with self._lock:
            text = json.dumps({"logs": list(self.logs.items())[-_MOST:], "files": list(self.files)[-_MOST:]})
        checked_file.write(self.note, text.encode())


@lru_cache(maxsize=64)
def asked_below(note: str) -> Asked:
    """What this process has asked for, and what a former one has noted."""
    made = Asked(note)
    with contextlib.suppress(ValueError, TypeError, KeyError):
        found = json.loads(checked_file.read(note) or b"")
        made.logs = {str(uri): str(name) for uri, name in found["logs"]}
        made.files = dict.fromkeys(map(str, found["files"]))
    atexit.register(made.keep)
    return made
