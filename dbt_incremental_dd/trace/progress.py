"""Progress of long operations: a line every ten seconds, with the bytes written so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyarrow import fs as pafs

from dbt_incremental_dd.trace.layout import Storage

EVERY = 10.0
"""Seconds."""


@contextmanager
def progress(storage: Storage, uri: str, what: str, report: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, reports ``what``, the seconds, and on a local disk the bytes written under ``uri``."""
    done = threading.Event()
    began, started = time.time_ns(), time.monotonic()

    def tell() -> None:
        while not done.wait(EVERY):
            # In object storage, this would take as many requests as there are files.
            written = f", {size_text(_written(storage, uri, began))} written" if storage.is_local else ""
            report(f"{what}: {time.monotonic() - started:.0f} s{written}")

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def size_text(size: int) -> str:
    """A number of bytes for people: ``512 B``, ``1.2 MB``."""
    value = float(max(size, 0))
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _written(storage: Storage, uri: str, since: int) -> int:
    """Bytes of the files changed since a time (ns)."""
    try:
        filesystem, root = storage.filesystem(uri)
        found = filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True, recursive=True))
    except OSError:
        return 0  # a file may be removed meanwhile
    return sum(info.size or 0 for info in found if (info.mtime_ns or 0) >= since)
