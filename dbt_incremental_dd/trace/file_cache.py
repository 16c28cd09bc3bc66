"""Small data files, each column decoded once in a process: several models read a delta, and files never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

MOST_BYTES = 64 << 20
"""Of all columns that are kept."""
_LARGEST_SHARE = 1 / 16
"""Of these, for one file. Larger ones are decoded each time: a small file may have large columns."""


@dataclass(frozen=True)
class _File:
    """``names``: all its columns'. ``table`` has those that were asked for."""

    names: frozenset[str]
    table: pa.Table
    bytes: int


class FileCache:
    """Threads may share it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[str, _File] = OrderedDict()
        self._bytes = 0

    def table(self, filesystem: fs.FileSystem, path: str, wanted: pa.Schema) -> pa.Table | None:
        """All rows of a file; a column that it lacks is NULL. None if it has one of another type.

        Raises OSError or ArrowInvalid for a file that is not as it was written.
        """
        with self._lock:
            known = self._files.get(path)
        if known is None or any(name in known.names and name not in known.table.column_names for name in wanted.names):
            known = self._read(filesystem, path, wanted, known)
        columns = []
        for field in wanted:
            if field.name not in known.names:
                columns.append(pa.nulls(known.table.num_rows, field.type))
            elif known.table.schema.field(field.name).type != field.type:
                return None
            else:
                columns.append(known.table[field.name])
        return pa.table(columns, wanted)

    def _read(self, filesystem: fs.FileSystem, path: str, wanted: pa.Schema, known: _File | None) -> _File:
        with pq.ParquetFile(
            path, filesystem=filesystem, coerce_int96_timestamp_unit="us", page_checksum_verification=True
        ) as file:
            names = file.schema_arrow.names
            before = {} if known is None else {name: known.table[name] for name in known.table.column_names}
            new = [name for name in wanted.names if name in names and name not in before]
            table = file.read(columns=new, use_threads=False).select(new)
        for name, column in before.items():
            table = table.append_column(name, column)
        made = _File(frozenset(names), table, table.nbytes)
        if made.bytes > _LARGEST_SHARE * self._most_bytes:
            return made
        with self._lock:
            replaced = self._files.pop(path, None)
            self._files[path] = made
            self._bytes += made.bytes - (replaced.bytes if replaced else 0)
            while self._bytes > self._most_bytes:
                self._bytes -= self._files.popitem(last=False)[1].bytes
        return made
