"""The one file system that the query engine has: data files of collections, to be read and nothing else."""

from __future__ import annotations

import datetime
import threading
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from fsspec.spec import AbstractFileSystem

from dbt_incremental_dd.trace.layout import Storage

PROTOCOL = "stored"
"""What its paths begin with; behind it they are relative to the state root."""
_NEVER_CHANGED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FOLDER, _SUFFIX = "collections", ".parquet"


class StoredFiles(AbstractFileSystem):  # type: ignore[misc]
    """Opens Parquet files below ``<state_root>/collections`` for reading. It has no other file and cannot write, so
    neither can a DuckDB whose own file systems are disabled."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def open(self, path: str, mode: str = "rb", **_: Any) -> _ReadOnlyFile:
        """Raises PermissionError for whatever is no data file, or for another mode than reading."""
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        filesystem, full = self._place(path)
        return _ReadOnlyFile(filesystem.open_input_file(full))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Its size in bytes."""
        filesystem, full = self._place(path)
        return {"name": path, "size": filesystem.get_file_info(full).size, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is such a data file."""
        filesystem, full = self._place(path)
        return bool(filesystem.get_file_info(full).is_file)

    def isfile(self, path: str) -> bool:
        """The same."""
        return self.exists(path)

    def glob(self, path: str, **_: Any) -> list[str]:
        """The path itself: no character of it is a pattern."""
        return [path]

    def modified(self, path: str) -> datetime.datetime:
        """Always the same: a data file is written once."""
        return _NEVER_CHANGED

    def _place(self, path: str) -> tuple[Any, str]:
        below = PurePosixPath(path.removeprefix(f"{PROTOCOL}://"))
        is_data = below.parts[:1] == (_FOLDER,) and below.suffix == _SUFFIX and ".." not in below.parts
        if not is_data or below.is_absolute():
            raise PermissionError(f"{path} is no data file of a collection")
        return self._storage.filesystem(f"{self._storage.root}/{below}")


class _ReadOnlyFile:
    """One handle for several of DuckDB's threads: each has its own position, for seek and read come one after the other
    and other threads may come between."""

    def __init__(self, stored: pa.NativeFile) -> None:
        self._stored = stored
        self._own = threading.local()

    def seek(self, offset: int, whence: int = 0) -> int:
        """``offset`` in bytes from the beginning."""
        if whence != 0:
            raise OSError("files are read by their absolute positions")
        self._own.at = offset
        return offset

    def tell(self) -> int:
        """Where this thread is."""
        return int(getattr(self._own, "at", 0))

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes from where this thread is."""
        at = self.tell()
        found = bytes(self._stored.read_at(self._stored.size() - at if size < 0 else size, at))
        self._own.at = at + len(found)
        return found

    def seekable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """It reads no more."""
        self._stored.close()
