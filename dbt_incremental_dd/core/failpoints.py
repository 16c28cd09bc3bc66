"""Failpoints: named points at which stored state changes, where tests can kill the process.

``DD_STOP_AT=commit: before`` kills the process (SIGKILL) at that point, ``DD_STOP_AT=commit: before#3`` when it is
reached for the third time. ``DD_POINTS=<file>`` appends the name of each point reached to the file. Otherwise a point
costs one comparison.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable


def reached(name: str) -> None:
    """Marks the failpoint ``name`` in the code."""
    if _watcher is not None:
        _watcher(name)


def watch(stop_at: str = "", noted_in: str = "") -> None:
    """Kills the process at ``stop_at`` and records points in ``noted_in`` from now on; neither if both are empty."""
    global _watcher
    _watcher = _make_watcher(stop_at, noted_in) if stop_at or noted_in else None


def _make_watcher(stop_at: str, noted_in: str) -> Callable[[str], None]:
    point, _, which = stop_at.partition("#")
    counts: Counter[str] = Counter()
    lock = threading.Lock()

    def watcher(name: str) -> None:
        with lock:
            counts[name] += 1
            if noted_in:
                with open(noted_in, "a") as file:
                    file.write(f"{name}\n")
            if name == point and counts[name] == int(which or 1):
                os.kill(os.getpid(), signal.SIGKILL)

    return watcher


_watcher: Callable[[str], None] | None = None
watch(os.environ.get("DD_STOP_AT", ""), os.environ.get("DD_POINTS", ""))
