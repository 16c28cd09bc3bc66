"""Finds the rows of some keys in sorted files by reading only the pages that may hold them.

Arrow and DuckDB read whole column chunks. Therefore the pages are copied unchanged into a Parquet file in memory, which
Arrow decodes. Apart from its chunk's dictionary, which is copied along, a page is self-contained.
"""

from __future__ import annotations

import logging
import mmap
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.parquet.page_index import FileColumn, PageIndex, Values, comparable, open_pages
from dbt_incremental_dd.parquet.thrift import I64, STRUCT, Encoded, Fields, Items, Number, encode, with_longs

_LOG = logging.getLogger(__name__)
"""Logs what a probe read at DEBUG, as ``read_rows`` and ``read_bytes``."""
_MAGIC = b"PAR1"
_LARGEST_SHARE = 0.5
"""Of a file's pages. Files of which more are needed are read by whole chunks."""
_MANY = 5_000
_LARGEST_SHARE_OF_MANY = 0.08
"""Of at least ``_MANY`` pages. Beyond it DuckDB is quicker, which reads whole chunks in several threads."""


def probe_pages(
    filesystem: pafs.FileSystem, paths: Sequence[str], columns: pa.Schema, keys: Mapping[str, Sequence[Any]]
) -> tuple[list[pa.Table], list[str]]:
    """The matching rows of the files that have an index, and the paths of the others. A row matches if each key column
    has one of its values.

    Raises OSError for a page that is not as it was written.
    """
    if not isinstance(filesystem, pafs.LocalFileSystem) or not keys:
        return [], list(paths)
    try:
        return _probe(paths, columns, keys)
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        if "checksum" in str(error).lower():
            raise
        # The index is damaged; the file itself may be intact.
        return [], list(paths)


def _probe(
    paths: Sequence[str], columns: pa.Schema, keys: Mapping[str, Sequence[Any]]
) -> tuple[list[pa.Table], list[str]]:
    others: list[str] = []
    made: dict[tuple[str, ...], _PageFile] = {}
    key_values = {name: pa.array(values, columns.field(name).type) for name, values in keys.items()}
    found = {path: _candidate_pages(path, columns.names, key_values) for path in paths}
    picked = [one for one in found.values() if one is not None]
    count, total = sum(len(one.pages) for one in picked), sum(np.count_nonzero(one.index.are_pages) for one in picked)
    if count > _MANY and count > _LARGEST_SHARE_OF_MANY * total:
        return [], list(paths)
    for path, one in found.items():
        if one is None:
            others.append(path)
        elif len(one.pages):
            like = tuple(one.index.stored(name) for name in columns.names)
            made.setdefault(like, _PageFile(one.fields)).add(path, one)
    tables = [_filtered(file.table().select(columns.names).cast(columns), key_values) for file in made.values()]
    for file in made.values():
        _LOG.debug("read %d rows of pages", file.rows, extra={"read_rows": file.rows, "read_bytes": file.read_bytes})
    return tables, others


def _filtered(table: pa.Table, key_values: Mapping[str, pa.Array]) -> pa.Table:
    for name, values in key_values.items():
        table = table.filter(pc.is_in(table[name], value_set=values))
    return table


@dataclass(frozen=True)
class _Pages:
    """The pages to read of one file, as rows of its index."""

    index: PageIndex
    fields: tuple[FileColumn, ...]
    pages: np.ndarray[Any, np.dtype[np.int64]]


def _candidate_pages(path: str, names: Sequence[str], key_values: Mapping[str, pa.Array]) -> _Pages | None:
    """The pages to read; None if the file has no index, lacks a column, or would have to be read for the most part."""
    index = open_pages(path)
    name = None if index is None else next((name for name in key_values if index.is_sorted_by(name)), None)
    if index is None or name is None:
        return None
    fields = [index.field(column) for column in names]
    firsts, values = index.keys(name), comparable(key_values[name])
    if values is None or values.dtype.kind != firsts.dtype.kind or None in fields:
        return None
    pages = np.flatnonzero(_may_hold(firsts, np.sort(values)) & index.are_pages)
    if len(pages) > _LARGEST_SHARE * np.count_nonzero(index.are_pages):
        return None
    return _Pages(index, tuple(field for field in fields if field), pages)


def _may_hold(firsts: Values, values: Values) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row but the last, whether one of the values lies between its first value and the next row's."""
    return np.searchsorted(values, firsts[1:], "right") > np.searchsorted(values, firsts[:-1], "left")


@dataclass(frozen=True)
class _Column:
    """A leaf column of a file, with its part of the index."""

    source: memoryview
    places: np.ndarray[Any, np.dtype[np.int64]]
    checksums: np.ndarray[Any, np.dtype[np.uint32]] | None

    def pages(self, first: int, end: int) -> memoryview:
        """Adjacent pages. Raises OSError for one that is not as it was written."""
        places = self.places[first : end + 1].tolist()
        if self.checksums is not None:
            for (start, stop), known in zip(pairwise(places), self.checksums[first:end].tolist(), strict=True):
                if zlib.crc32(self.source[start:stop]) != known:
                    raise OSError(f"checksum verification failed for the page at {start}")
        return self.source[places[0] : places[-1]]


@dataclass
class _PageFile:
    """A Parquet file in memory, with a row group for each one that pages were copied from."""

    fields: tuple[FileColumn, ...]
    parts: list[bytes | memoryview] = field(default_factory=lambda: [_MAGIC])
    size: int = len(_MAGIC)
    groups: list[Fields] = field(default_factory=list)
    rows: int = 0
    read_bytes: int = 0

    def add(self, path: str, found: _Pages) -> None:
        """Adds the pages of one file."""
        before = self.size
        with open(path, "rb") as file:
            source = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        for group, pages in found.index.by_group(found.pages):
            try:
                self._add_group(source, found.index, group, pages)
            except OSError as error:
                raise OSError(f"{error} of file {path}") from error
        self.read_bytes += self.size - before + found.index.take_read_bytes()

    def _add_group(self, source: memoryview, index: PageIndex, group: int, pages: np.ndarray[Any, Any]) -> None:
        rows = int((index.rows[pages + 1] - index.rows[pages]).sum())
        breaks = np.flatnonzero(pages[1:] - pages[:-1] != 1)
        firsts = pages[np.concatenate(([0], breaks + 1))]
        ends = pages[np.concatenate((breaks, [len(pages) - 1]))] + 1
        before, chunks = self.size, []
        for part in self.fields:
            for number, same in zip(part.numbers, part.encoded, strict=True):
                column = _Column(source, index.places(number), index.checksums(number))
                dictionary = self._copy(column, [(group, group + 1)])
                data = self._copy(column, zip(firsts.tolist(), ends.tolist(), strict=True))
                chunks.append(_chunk(same, rows, dictionary, data, self.size))
        total = Number(self.size - before, I64)
        self.groups.append({1: Items(STRUCT, chunks), 2: total, 3: Number(rows, I64)})
        self.rows += rows

    def _copy(self, column: _Column, ranges: Iterable[tuple[int, int]]) -> int:
        """Appends pages. Returns the offset of the first one."""
        at = self.size
        for first, end in ranges:
            pages = column.pages(first, end)
            if len(pages):
                self.parts.append(pages)
                self.size += len(pages)
        return at

    def table(self) -> pa.Table:
        """All rows of the file."""
        root: Fields = {4: b"schema", 5: Number(len(self.fields))}
        schema = Items(STRUCT, [root, *(element for part in self.fields for element in part.schema)])
        footer = encode({1: Number(1), 2: schema, 3: Number(self.rows, I64), 4: Items(STRUCT, self.groups)})
        data = b"".join((*self.parts, footer, len(footer).to_bytes(4, "little"), _MAGIC))
        file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        return file.read()


def _chunk(same: bytes, rows: int, dictionary: int, data: int, end: int) -> Encoded:
    """The description of a column chunk. Its dictionary, if there is one, precedes its pages."""
    size = end - dictionary
    places = [(9, data), (11, dictionary)] if data > dictionary else [(9, data)]
    # The chunk's last field describes its column, and ends with it.
    return Encoded(with_longs(same, 4, [(5, rows), (6, size), (7, size), *places]) + b"\0")
