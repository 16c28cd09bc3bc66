"""The query engine's only file system: the collections' data files, read-only."""

from __future__ import annotations

import datetime
import threading
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
from fsspec.spec import AbstractFileSystem

from dbt_incremental_dd.core.rights import EVERYTHING, Rights
from dbt_incremental_dd.trace.layout import Storage, name_of

PROTOCOL = "stored"
"""The scheme of its paths, which are relative to the state root."""
_NEVER_CHANGED = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FOLDER, _SUFFIX = "collections", ".parquet"


class StoredFiles(AbstractFileSystem):  # type: ignore[misc]
    """Opens Parquet files below ``<state_root>/collections`` for reading, of the collections that ``rights`` let read.
    It has no other files and cannot write, so neither can a DuckDB whose own file systems are disabled."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, storage: Storage, rights: Rights = EVERYTHING) -> None:
        super().__init__()
        self._storage = storage
        self._rights = rights

    def open(self, path: str, mode: str = "rb", **_: Any) -> _ReadOnlyFile:
        """Raises PermissionError for anything but a data file, and for modes other than ``rb``."""
        if mode != "rb":
            raise PermissionError(f"{path} can only be read")
        filesystem, full = self._resolve(path)
        return _ReadOnlyFile(filesystem.open_input_file(full))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """The file's size in bytes."""
        filesystem, full = self._resolve(path)
        return {"name": path, "size": filesystem.get_file_info(full).size, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is such a data file."""
        filesystem, full = self._resolve(path)
        return bool(filesystem.get_file_info(full).is_file)

    def isfile(self, path: str) -> bool:
        """As ``exists``."""
        return self.exists(path)

    def glob(self, path: str, **_: Any) -> list[str]:
        """The path itself: it is no pattern."""
        return [path]

    def modified(self, path: str) -> datetime.datetime:
        """A constant: data files never change."""
        return _NEVER_CHANGED

    def _resolve(self, path: str) -> tuple[Any, str]:
        below = PurePosixPath(path.removeprefix(f"{PROTOCOL}://"))
        is_data = below.parts[:1] == (_FOLDER,) and below.suffix == _SUFFIX and ".." not in below.parts
        if not is_data or below.is_absolute() or not self._rights.may_read(name_of(below.parts[1])):
            raise PermissionError(f"{path} is no data file of a collection")
        return self._storage.filesystem(f"{self._storage.root}/{below}")


class _ReadOnlyFile:
    """One handle for several of DuckDB's threads. Each has its own position, because other threads may read between its
    seek and its read."""

    def __init__(self, stored: pa.NativeFile) -> None:
        self._stored = stored
        self._own = threading.local()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Moves this thread to ``offset`` bytes from the beginning."""
        if whence != 0:
            raise OSError("files are read by their absolute positions")
        self._own.at = offset
        return offset

    def tell(self) -> int:
        """This thread's position."""
        return int(getattr(self._own, "at", 0))

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes from this thread's position."""
        at = self.tell()
        found = bytes(self._stored.read_at(self._stored.size() - at if size < 0 else size, at))
        self._own.at = at + len(found)
        return found

    def seekable(self) -> bool:
        """Always true."""
        return True

    def close(self) -> None:
        """Closes the file."""
        self._stored.close()
