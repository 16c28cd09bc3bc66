"""The index of a sorted Parquet file's pages, in a file beside it, so that a few keys cost a few pages.

``<file>.pages`` is an Arrow file of one record batch, and its CRC-32. Each row group has a row for its dictionaries,
one for each page and one for its end, in this order; the pages of all its columns begin at the same rows.

    row          long    the page's first row in the row group; at the end: the number of rows
    key:<name>   long or 32 bytes: the page's first value of a column that each row group is sorted by; at the end: the
                 last value. Strings are cut to 32 bytes, dates are days.
    at:<number>  long    the offset in the file of a leaf column's page, which ends where the next row's begins
    crc:<number> uint32  the CRC-32 of the page and its header; older indexes have none

Parquet's own page index (apache/parquet-format, PageIndex.md) holds the same. But locating it takes reading the whole
footer, whose length is that of all columns of all row groups, and it has both bounds of every column.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.parquet.thrift import I32, I64, STRUCT, Fields, Items, Number, decode, encode

SUFFIX = ".pages"
CHECKED, CRC_BYTES = b"DDPAGES1", 4
"""The end of an index with a checksum, and the number of bytes of the checksum before it."""
KEY_BYTES = 32

Values = npt.NDArray[Any]
"""Integers, or bytes of one length."""


@dataclass(frozen=True)
class FileColumn:
    """A top-level column of the file: its part of the schema, and its leaf columns."""

    schema: tuple[Fields, ...]
    chunks: tuple[Fields, ...]
    """What each leaf's chunks share in all row groups: type, encodings, path and codec."""
    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.schema[0][4].decode())

    @cached_property
    def encoded(self) -> tuple[bytes, ...]:
        """The beginning of each leaf's chunk in a footer, up to what all of them share."""
        end = len(b"\0\0")
        return tuple(encode({2: Number(0, I64), 3: chunk})[:-end] for chunk in self.chunks)

    def to_text(self) -> str:
        """The stored form."""
        numbers = [Number(number) for number in self.numbers]
        parts = {1: Items(STRUCT, list(self.schema)), 2: Items(STRUCT, list(self.chunks)), 3: Items(I32, numbers)}
        return base64.b64encode(encode(parts)).decode()

    @staticmethod
    def from_text(stored: str) -> FileColumn:
        """The column that ``to_text`` stored."""
        parts, _ = decode(base64.b64decode(stored))
        return FileColumn(tuple(parts[1].values), tuple(parts[2].values), tuple(parts[3].values))


class PageIndex:
    """The index of one file. Its arrays have the index's rows; they are read from disk when they are used."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        metadata = batch.schema.metadata
        self._sizes = np.array(json.loads(metadata[b"groups"]), np.int64)
        self._fields: dict[str, str] = json.loads(metadata[b"fields"])
        self._unread = sum(map(len, metadata.values()))
        self._keys: dict[str, Values] = {}
        self._made: dict[str, FileColumn] = {}
        self._places: dict[int, npt.NDArray[np.int64]] = {}
        self._checksums: dict[int, npt.NDArray[np.uint32] | None] = {}

    def take_read_bytes(self) -> int:
        """Bytes of the index read since the last call, apart from the few that locate pages."""
        taken, self._unread = self._unread, 0
        return taken

    def is_sorted_by(self, name: str) -> bool:
        """Whether each row group is sorted by a column."""
        return f"key:{name}" in self._batch.schema.names

    def keys(self, name: str) -> Values:
        """The pages' first values of a column that the row groups are sorted by."""
        if name not in self._keys:
            stored = self._batch.column(f"key:{name}")
            self._unread += stored.nbytes
            self._keys[name] = _stored_values(stored)
        return self._keys[name]

    def stored(self, name: str) -> str:
        """A column's stored description; other files may have an equal one."""
        return self._fields[name]

    def field(self, name: str) -> FileColumn | None:
        """A column of the file; None if there is none, or if its values repeat."""
        if name not in self._made and name in self._fields:
            self._made[name] = FileColumn.from_text(self._fields[name])
        return self._made.get(name)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """The pages' first rows, counted within their row group."""
        return self._longs("row")

    @cached_property
    def are_pages(self) -> npt.NDArray[np.bool_]:
        """Which rows of the index are pages, without the last row, which is none."""
        found = np.ones(len(self._batch), np.bool_)
        found[self._starts] = found[self._starts + self._sizes - 1] = False
        return found[:-1]

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self._sizes) - self._sizes

    def groups(self, pages: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The row groups of sorted pages: each one's first row of the index, which is that of its dictionaries, and
        the position of its first page."""
        groups = np.searchsorted(self._starts, pages, "right") - 1
        firsts = np.flatnonzero(np.diff(groups, prepend=-1))
        return self._starts[groups[firsts]], firsts

    def places(self, number: int) -> npt.NDArray[np.int64]:
        """The offsets of a leaf column's pages in the file."""
        if number not in self._places:
            self._places[number] = self._longs(f"at:{number}")
        return self._places[number]

    def has_dictionary(self, number: int) -> npt.NDArray[np.bool_]:
        """For each row of the index that is of a row group's dictionaries, whether there is one of a leaf column."""
        places = self.places(number)
        return places[1:] > places[:-1]

    @property
    def has_checksums(self) -> bool:
        """Whether the pages' checksums were stored."""
        return any(name.startswith("crc:") for name in self._batch.schema.names)

    def checksums(self, number: int) -> npt.NDArray[np.uint32] | None:
        """The checksums of a leaf column's pages, headers included; None if they were not stored."""
        if number not in self._checksums:
            name = f"crc:{number}"
            there = name in self._batch.schema.names
            self._checksums[number] = np.asarray(self._batch.column(name).to_numpy()) if there else None
        return self._checksums[number]

    def _longs(self, name: str) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = self._batch.column(name).to_numpy()
        return found


@lru_cache(maxsize=4096)
def open_pages(path: str) -> PageIndex | None:
    """The index of a local file; None if there is none, or it is damaged. Cached, because files never change."""
    if not Path(f"{path}{SUFFIX}").exists():
        return None
    with pa.memory_map(f"{path}{SUFFIX}") as mapped:
        data = mapped.read_buffer()
    if data[-len(CHECKED) :].to_pybytes() == CHECKED:
        end = data.size - len(CHECKED) - CRC_BYTES
        if zlib.crc32(data[:end]) != int.from_bytes(data[end : end + CRC_BYTES].to_pybytes(), "little"):
            return None
        data = data[:end]
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        return PageIndex(reader.get_batch(0))


def comparable(values: pa.Array) -> Values | None:
    """Values as integers, or as the first bytes of their text; None for other types.

    Preserves equality, and never inverts the order. NULL comes before all values.
    """
    kind = values.type
    if pa.types.is_string(kind):
        cut = pc.fill_null(pc.binary_slice(values.cast(pa.binary()), 0, KEY_BYTES), b"")
        return np.array(cut.to_numpy(zero_copy_only=False), dtype=f"S{KEY_BYTES}")
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif not pa.types.is_integer(kind):
        return None
    longs = pc.fill_null(values.cast(pa.int64()), np.iinfo(np.int64).min)
    return np.asarray(longs.to_numpy(zero_copy_only=False))


def _stored_values(column: pa.Array) -> Values:
    if pa.types.is_fixed_size_binary(column.type):
        return np.frombuffer(column.buffers()[1], dtype=f"S{KEY_BYTES}")[column.offset :][: len(column)]
    return np.asarray(column.to_numpy())
