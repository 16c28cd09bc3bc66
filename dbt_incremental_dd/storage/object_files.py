"""A bucket as one of pyarrow's file systems.

All requests are made by the thread that asks. A library's own threads, of which some may still be at work while Python
ends, can abort the process then, when all has been done.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

from dbt_incremental_dd.storage.objects import Objects


class ObjectFiles(pafs.FileSystemHandler):  # type: ignore[misc]
    """Paths begin with the bucket's name. There are no folders but those of objects. All methods raise OSError;
    FileNotFoundError for an object that is not there."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectFiles) and self._objects == other._objects

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._objects.name)

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Iterable[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> pafs.FileInfo:
        try:
            return _file(path, self._objects.head(_name(path)))
        except FileNotFoundError:
            found = self._objects.listed(_name(path), recursive=False)
            kind = pafs.FileType.Directory if any(found) else pafs.FileType.NotFound
            return pafs.FileInfo(path, kind)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        bucket = selector.base_dir.partition("/")[0]
        files, folders = self._objects.listed(_name(selector.base_dir), recursive=selector.recursive)
        if not files and not folders and not selector.allow_not_found:
            raise FileNotFoundError(f"there is no folder {selector.base_dir}")
        infos = [_file(f"{bucket}/{file['path']}", file) for file in files]
        return [*infos, *(pafs.FileInfo(f"{bucket}/{folder}", pafs.FileType.Directory) for folder in folders)]

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: FBT001 - as pyarrow calls it
        """There is nothing to create."""

    def delete_dir(self, path: str) -> None:
        files, _ = self._objects.listed(_name(path), recursive=True)
        self._objects.delete([file["path"] for file in files])

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        self.delete_dir(path)

    def delete_root_dir_contents(self) -> None:
        raise OSError(f"all of {self._objects.name} is not removed")

    def delete_file(self, path: str) -> None:
        self._objects.head(_name(path))
        self._objects.delete([_name(path)])

    def move(self, source: str, target: str) -> None:
        self.copy_file(source, target)
        self.delete_file(source)

    def copy_file(self, source: str, target: str) -> None:
        self._objects.copy(_name(source), _name(target))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self._objects.read(_name(path)))

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Read(self._objects, _name(path)), mode="r")

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        return pa.PythonFile(_Written(self._objects, _name(path)), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        raise OSError(f"{path}: objects are not appended to")


class _Read(io.RawIOBase):
    """An object of which each read is a request."""

    def __init__(self, objects: Objects, name: str) -> None:
        self._objects = objects
        self._name = name
        self._size = int(objects.head(name)["size"])
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        found = self._objects.read_range(self._name, self._at, end)
        self._at = end
        return found


class _Written(io.RawIOBase):
    """An object that is there once the file is closed."""

    def __init__(self, objects: Objects, name: str) -> None:
        self._objects = objects
        self._name = name
        self._data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = bytes(data)  # Arrow's buffers, too
        self._data += taken
        return len(taken)

    def tell(self) -> int:
        return len(self._data)

    def close(self) -> None:
        if not self.closed:
            self._objects.write(self._name, bytes(self._data))
        super().close()


def _name(path: str) -> str:
    return path.partition("/")[2]


def _file(path: str, meta: Mapping[str, Any]) -> pafs.FileInfo:
    return pafs.FileInfo(path, pafs.FileType.File, size=meta["size"], mtime=meta["last_modified"])
