"""Where the pages of a sorted Parquet file lie: an index beside the file, so that a few keys cost a few pages.

``<file>.pages`` is an Arrow file of one record batch, and its CRC-32. Each row group has a row for its dictionaries,
one for each page and one for its end, in this order; all its columns have their pages cut at the same rows.

    row          long    the page's first row in the row group; the end's: how many rows there are
    key:<name>   long or 32 bytes: the page's first value of a column that each row group is sorted by; the end's: the
                 last value. Strings are cut to 32 bytes, and dates are days.
    at:<number>  long    where the page of a leaf column begins in the file; it ends where the next row's begins
    crc:<number> uint32  the CRC-32 of the page and its header; indexes that were stored before have none

Parquet's own page index (apache/parquet-format, PageIndex.md) says the same. But to find it is to read the whole
footer, which is as long as all columns of all row groups, and it holds both bounds of every column.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.parquet.thrift import I32, I64, STRUCT, Fields, Items, Number, decode, decode_numbers, encode
from dbt_incremental_dd.storage import durable

SUFFIX = ".pages"
_CHECKED, _CRC = b"DDPAGES1", 4
"""How an index ends that has a checksum, and the checksum's bytes before that."""
_PREFIX = 32
_TAIL = 8
"""Bytes of a Parquet file after its footer: the footer's length, and four more."""
_REPEATED = 2
_PAGE_HEADS = bytes((0x16, 0x15, 0x16))
"""Of a page's place, size and first row in Thrift's compact protocol."""

Values = npt.NDArray[Any]
"""Of whole numbers, or of bytes of one length."""


@dataclass(frozen=True)
class FileColumn:
    """A column of the file: its part of the schema, and its leaf columns."""

    schema: tuple[Fields, ...]
    chunks: tuple[Fields, ...]
    """What is the same of their chunks in all row groups: type, encodings, path and codec."""
    numbers: tuple[int, ...]

    @cached_property
    def encoded(self) -> tuple[bytes, ...]:
        """How each leaf's chunks begin in a footer: at no place, and with what is the same of all."""
        end = len(b"\0\0")
        return tuple(encode({2: Number(0, I64), 3: chunk})[:-end] for chunk in self.chunks)

    def to_text(self) -> str:
        """As it is stored."""
        numbers = [Number(number) for number in self.numbers]
        parts = {1: Items(STRUCT, list(self.schema)), 2: Items(STRUCT, list(self.chunks)), 3: Items(I32, numbers)}
        return base64.b64encode(encode(parts)).decode()

    @staticmethod
    def of_text(stored: str) -> FileColumn:
        """What ``to_text`` stored."""
        parts, _ = decode(base64.b64decode(stored))
        return FileColumn(tuple(parts[1].values), tuple(parts[2].values), tuple(parts[3].values))


class PageIndex:
    """The index of one file. Arrays have the index's rows; they are read from the disk as far as they are used."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        metadata = batch.schema.metadata
        self._sizes = np.array(json.loads(metadata[b"groups"]), np.int64)
        self._fields: dict[str, str] = json.loads(metadata[b"fields"])
        self._unread = sum(map(len, metadata.values()))
        self._keys: dict[str, Values] = {}
        self._made: dict[str, FileColumn] = {}
        self._places: dict[int, npt.NDArray[np.int64]] = {}

    def take_read_bytes(self) -> int:
        """Bytes of the index that were read since the last call, but for the few that tell the pages' places."""
        taken, self._unread = self._unread, 0
        return taken

    def is_sorted_by(self, name: str) -> bool:
        """Whether the file's row groups are sorted by a column."""
        return f"key:{name}" in self._batch.schema.names

    def keys(self, name: str) -> Values:
        """The pages' first values of a column that the file is sorted by."""
        if name not in self._keys:
            stored = self._batch.column(f"key:{name}")
            self._unread += stored.nbytes
            self._keys[name] = _stored_values(stored)
        return self._keys[name]

    def stored(self, name: str) -> str:
        """How a column is described; other files may describe it in the same way."""
        return self._fields[name]

    def field(self, name: str) -> FileColumn | None:
        """A column of the file; None if it has no such column, or one whose values repeat."""
        if name not in self._made and name in self._fields:
            self._made[name] = FileColumn.of_text(self._fields[name])
        return self._made.get(name)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """The pages' first rows in their row group."""
        return self._longs("row")

    @cached_property
    def are_pages(self) -> npt.NDArray[np.bool_]:
        """Which rows are pages; but for the last row, which is none."""
        found = np.ones(len(self._batch), np.bool_)
        found[self._starts] = found[self._starts + self._sizes - 1] = False
        return found[:-1]

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self._sizes) - self._sizes

    def by_group(self, pages: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Pages by row group, with each group's first row of the index, which is its dictionaries'."""
        groups = np.searchsorted(self._starts, pages, "right") - 1
        firsts = np.flatnonzero(np.diff(groups, prepend=-1))
        for group, part in zip(groups[firsts], np.split(pages, firsts[1:]), strict=True):
            yield int(self._starts[group]), part

    def places(self, number: int) -> npt.NDArray[np.int64]:
        """Where the pages of a leaf column begin."""
        if number not in self._places:
            self._places[number] = self._longs(f"at:{number}")
        return self._places[number]

    def checksums(self, number: int) -> npt.NDArray[np.uint32] | None:
        """Those of a leaf column's pages, with their headers; None if they were not stored."""
        name = f"crc:{number}"
        return np.asarray(self._batch.column(name).to_numpy()) if name in self._batch.schema.names else None

    def _longs(self, name: str) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = self._batch.column(name).to_numpy()
        return found


@lru_cache(maxsize=4096)
def open_pages(path: str) -> PageIndex | None:
    """The index of a local file, which never changes; None if there is none, or where it is damaged."""
    if not Path(f"{path}{SUFFIX}").exists():
        return None
    with pa.memory_map(f"{path}{SUFFIX}") as mapped:
        data = mapped.read_buffer()
    if data[-len(_CHECKED) :].to_pybytes() == _CHECKED:
        end = data.size - len(_CHECKED) - _CRC
        if zlib.crc32(data[:end]) != int.from_bytes(data[end : end + _CRC].to_pybytes(), "little"):
            return None
        data = data[:end]
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        return PageIndex(reader.get_batch(0))


def write_pages(filesystem: pafs.FileSystem, path: str, footer: pq.FileMetaData, bounded: Sequence[str]) -> None:
    """Stores the index of a local file that is sorted by one of some columns; of any other nothing, nor where its own
    index is not as this one needs it."""
    names = [name for name in bounded if "." not in name and _may_be_sorted(footer, name)]
    if not names or not isinstance(filesystem, pafs.LocalFileSystem):  # elsewhere single pages are not read
        return
    with filesystem.open_input_file(path) as file:
        data = file.read()
    keys = {name: values for name in names if (values := _sorted(data, name)) is not None}
    try:
        batch = _pages(data, keys) if keys else None
    except (LookupError, ValueError):
        return
    if batch is not None:
        reached("index of pages: before")
        made = pa.BufferOutputStream()
        with pa.ipc.new_file(made, batch.schema) as writer:
            writer.write_batch(batch)
        index = made.getvalue()
        with filesystem.open_output_stream(f"{path}{SUFFIX}") as out:
            out.write(index)
            out.write(zlib.crc32(index).to_bytes(_CRC, "little") + _CHECKED)
        durable.note(f"{path}{SUFFIX}")


def comparable(values: pa.Array) -> Values | None:
    """Values as whole numbers, or as the first bytes of their text; None if they are of another kind.

    What is equal stays so, and what is less does not become more. NULL comes before all values.
    """
    kind = values.type
    if pa.types.is_string(kind):
        cut = pc.fill_null(pc.binary_slice(values.cast(pa.binary()), 0, _PREFIX), b"")
        return np.array(cut.to_numpy(zero_copy_only=False), dtype=f"S{_PREFIX}")
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif not pa.types.is_integer(kind):
        return None
    longs = pc.fill_null(values.cast(pa.int64()), np.iinfo(np.int64).min)
    return np.asarray(longs.to_numpy(zero_copy_only=False))


def _stored_values(column: pa.Array) -> Values:
    if pa.types.is_fixed_size_binary(column.type):
        return np.frombuffer(column.buffers()[1], dtype=f"S{_PREFIX}")[column.offset :][: len(column)]
    return np.asarray(column.to_numpy())


def _may_be_sorted(footer: pq.FileMetaData, name: str) -> bool:
    """Whether the row groups are in order by the column's bounds, which tells it apart from most others."""
    number = next((i for i in range(footer.num_columns) if footer.schema.column(i).path == name), None)
    if number is None:
        return False
    found = [footer.row_group(i).column(number).statistics for i in range(footer.num_row_groups)]
    if any(one is None or not one.has_min_max for one in found) or found[0].min == found[-1].max:
        return False
    return all(one.max <= other.min for one, other in pairwise(found))


def _sorted(data: bytes, name: str) -> list[Values] | None:
    """The column's values by row group; None if one of those is not sorted."""
    file = pq.ParquetFile(pa.BufferReader(data))
    groups = []
    for number in range(file.num_row_groups):
        values = comparable(file.read_row_group(number, columns=[name]).column(0).combine_chunks())
        if values is None or not (values[:-1] <= values[1:]).all():
            return None
        groups.append(values)
    return groups


@dataclass(frozen=True)
class _Chunk:
    """The pages of a column in one row group: their first rows, where they begin, and where the last one ends."""

    rows: list[int]
    starts: list[int]
    dictionary: int
    end: int


def _chunk(data: bytes, column: Fields) -> _Chunk:
    """Raises KeyError if the file has no index of its own."""
    stored = data[column[4] : column[4] + column[5]]
    pages = decode_numbers(stored, _PAGE_HEADS)
    if pages is None:
        found = decode(stored)[0][1].values
        pages = np.array([[page[number] for number in (1, 2, 3)] for page in found], np.int64)
    starts = pages[:, 0].tolist()
    return _Chunk(pages[:, 2].tolist(), starts, column[3].get(11) or starts[0], int(pages[-1, :2].sum()))


def _pages(data: bytes, keys: Mapping[str, Sequence[Values]]) -> pa.RecordBatch | None:
    """The index; None if the columns of a row group have their pages cut at different rows."""
    size = int.from_bytes(data[-_TAIL : 4 - _TAIL], "little")
    footer, _ = decode(data, len(data) - _TAIL - size)
    groups = footer[4].values
    rows: list[int] = []
    sizes: list[int] = []
    starts: list[list[int]] = [[] for _ in groups[0][1].values]
    for group in groups:
        chunks = [_chunk(data, column) for column in group[1].values]
        if any(chunk.rows != chunks[0].rows for chunk in chunks):
            return None
        sizes.append(len(chunks[0].rows) + 2)
        rows += [0, *chunks[0].rows, group[3]]
        for known, chunk in zip(starts, chunks, strict=True):
            known += [chunk.dictionary, *chunk.starts, chunk.end]
    columns = {"row": pa.array(rows, pa.int64())}
    columns |= {f"key:{name}": _firsts(values, rows, sizes) for name, values in keys.items()}
    columns |= {f"at:{number}": pa.array(known, pa.int64()) for number, known in enumerate(starts)}
    columns |= {f"crc:{number}": _checksums(data, known) for number, known in enumerate(starts)}
    fields = {name: field.to_text() for name, field in _fields(footer).items()}
    return pa.record_batch(columns).replace_schema_metadata({"fields": json.dumps(fields), "groups": json.dumps(sizes)})


def _checksums(data: bytes, starts: Sequence[int]) -> pa.Array:
    source = memoryview(data)
    return pa.array([*(zlib.crc32(source[a:b]) for a, b in pairwise(starts)), 0], pa.uint32())


def _firsts(groups: Sequence[Values], rows: Sequence[int], sizes: Sequence[int]) -> pa.Array:
    """The values at the pages' first rows, and the last value of each row group."""
    found, at = [], 0
    for values, size in zip(groups, sizes, strict=True):
        found.append(values[np.minimum(rows[at : at + size], len(values) - 1)])
        at += size
    firsts = np.concatenate(found)
    if firsts.dtype.kind == "S":
        return pa.Array.from_buffers(pa.binary(_PREFIX), len(firsts), [None, pa.py_buffer(firsts.tobytes())])
    return pa.array(firsts)


def _fields(footer: Fields) -> dict[str, FileColumn]:
    """The file's columns by name, without those whose values repeat."""
    schema, chunks = footer[2].values, [column[3] for column in footer[4].values[0][1].values]
    found, at, leaf = {}, 1, 0
    while at < len(schema):
        end = _end_of(schema, at)
        part = schema[at:end]
        leaves = range(leaf, leaf + sum(5 not in element for element in part))
        if all(element.get(3) != _REPEATED for element in part):
            same = tuple({number: chunks[i][number] for number in (1, 2, 3, 4)} for i in leaves)
            found[part[0][4].decode()] = FileColumn(tuple(part), same, tuple(leaves))
        at, leaf = end, leaves.stop
    return found


def _end_of(schema: Sequence[Fields], at: int) -> int:
    """Where the part of the schema that begins there ends; elements are in depth-first order."""
    end = at + 1
    for _ in range(schema[at].get(5, 0)):
        end = _end_of(schema, end)
    return end
