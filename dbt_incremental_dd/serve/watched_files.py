"""What is read of files, and read again whenever one of them has changed. While they are wrong, what was read before
stays in force."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class WatchedFiles(Generic[T]):
    """``read``: reads them; what it raises when it is first called is raised."""

    def __init__(self, paths: Sequence[Path], read: Callable[[], T], report: Callable[[str], None]) -> None:
        self._paths = paths
        self._read = read
        self._report = report
        self._mark = [_mark(path) for path in paths]
        self.content = read()

    def refresh(self) -> bool:
        """Reads the files again if one has changed. Returns whether that has succeeded; reports it otherwise."""
        mark = [_mark(path) for path in self._paths]
        if mark == self._mark:
            return False
        self._mark = mark
        names = " and ".join(path.name for path in self._paths)
        try:
            self.content = self._read()
        except Exception as error:  # whatever it is, who is let in must not depend on it
            self._report(f"WARNING: {error}\n  What was read of {names} before stays in force.")
            return False
        self._report(f"{names} read again")
        return True


def _mark(path: Path) -> object:
    try:
        told = os.stat(path)
    except OSError as error:
        return str(error)
    return told.st_mtime_ns, told.st_size, told.st_ino
