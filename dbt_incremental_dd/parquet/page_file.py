"""Decodes single pages of Parquet files: they are copied unchanged into a Parquet file in memory, which Arrow reads.

Arrow and DuckDB read whole column chunks. Apart from its chunk's dictionary, which is copied along, a page is
self-contained. To open a chunk costs several times what a page does: columns without dictionaries have all their pages
in one chunk, others a chunk for each row group that they come from.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.parquet.page_index import FileColumn, PageIndex
from dbt_incremental_dd.parquet.thrift import I64, STRUCT, Encoded, Fields, Items, Number, encode, with_longs
from dbt_incremental_dd.storage.part_copy import OpenPart, Range, fetch_ranges

Longs = npt.NDArray[np.int64]
_MAGIC = b"PAR1"
_LARGE = 1 << 20
"""Bytes that are worth decoding in several threads."""


@dataclass(frozen=True)
class Pages:
    """Pages of one file, as rows of its index. ``path``: to name it in errors."""

    path: str
    source: memoryview
    index: PageIndex
    pages: Longs
    part: OpenPart | None = None
    """Where the rest of the source may be fetched from, if it is a part of an object."""

    @cached_property
    def rows(self) -> Longs:
        """How many rows each of them has."""
        return self.index.rows[self.pages + 1] - self.index.rows[self.pages]

    @cached_property
    def groups(self) -> tuple[Longs, Longs]:
        """Their row groups: as rows of the index, which are those of dictionaries, and the place of the first page."""
        return self.index.groups(self.pages)

    @cached_property
    def with_dictionaries(self) -> Pages:
        """The same pages, and before those of each row group their dictionary."""
        starts, firsts = self.groups
        return replace(self, pages=np.insert(self.pages, firsts, starts))

    def only(self, chosen: npt.NDArray[np.bool_]) -> Pages:
        """Some of them."""
        return replace(self, pages=self.pages[chosen])

    def has_dictionary(self, number: int) -> bool:
        """Whether a leaf column has a dictionary in any of their row groups."""
        starts, _ = self.groups
        return bool(self.index.has_dictionary(number)[starts].any())

    def ranges(self, columns: Iterable[FileColumn]) -> Iterator[Range]:
        """Where the columns' pages and their dictionaries are, if they have checksums."""
        pages = self.with_dictionaries.pages
        for number in (number for column in columns for number in column.numbers):
            places, checksums = self.index.places(number), self.index.checksums(number)
            if checksums is not None:
                known = places[pages].tolist(), places[pages + 1].tolist(), checksums[pages].tolist()
                yield from zip(*known, strict=True)

    def copies(self, number: int) -> tuple[list[memoryview], Longs]:
        """A leaf column's pages, and how many bytes each has. Raises OSError for one that is not as it was written."""
        places, checksums = self.index.places(number), self.index.checksums(number)
        starts, ends = places[self.pages], places[self.pages + 1]
        found = [self.source[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        if checksums is not None:
            for page, known in zip(found, checksums[self.pages].tolist(), strict=True):
                if zlib.crc32(page) != known:
                    raise OSError(f"checksum verification failed for a page of file {self.path}")
        return found, ends - starts


def decoded(parts: Sequence[Pages], columns: Sequence[FileColumn]) -> tuple[pa.Table, int]:
    """The columns of all rows of the pages, in this order; and the bytes that were read. The files describe these
    columns alike.

    What is not on this disk is fetched first. Raises OSError, naming the file, for a page that is not as it was
    written.
    """
    fetch_ranges((part.part, part.ranges(columns)) for part in parts if part.part is not None)
    plain: list[FileColumn] = []
    others: list[FileColumn] = []
    for column in columns:
        has_one = any(part.has_dictionary(number) for part in parts for number in column.numbers)
        (others if has_one else plain).append(column)
    files = [file(parts, few) for file, few in ((_WithoutDictionaries, plain), (_ByRowGroup, others)) if few]
    found = {name: table[name] for table in (file.table() for file in files) for name in table.column_names}
    return pa.table({column.name: found[column.name] for column in columns}), sum(file.size for file in files)


def require_intact(parts: Iterable[Pages], columns: Sequence[FileColumn]) -> None:
    """Raises OSError, naming the file, for a page of these, or a dictionary, that is not as it was written."""
    for part in parts:
        for column in columns:
            for number in column.numbers:
                part.with_dictionaries.copies(number)


class _PageFile(ABC):
    """A Parquet file in memory."""

    def __init__(self, parts: Sequence[Pages], columns: Sequence[FileColumn]) -> None:
        self.size = len(_MAGIC)
        self._is_verified = True
        self._columns = columns
        self._data: list[bytes | memoryview] = [_MAGIC]
        leaves = [leaf for column in columns for leaf in zip(column.numbers, column.encoded, strict=True)]
        self._rows = self._rows_of_groups(parts)
        self._chunks = [self._copied(parts, number, same) for number, same in leaves]

    @abstractmethod
    def _rows_of_groups(self, parts: Sequence[Pages]) -> Longs:
        """How many rows each row group of this file has."""

    @abstractmethod
    def _copied(self, parts: Sequence[Pages], number: int, same: bytes) -> list[bytes]:
        """Copies a leaf column's pages. Returns the descriptions of its chunks, which begin with ``same``."""

    def _append(self, parts: Iterable[Pages], number: int) -> Longs:
        """Copies a leaf column's pages. Returns how many bytes each has."""
        sizes = [np.empty(0, np.int64)]
        for part in parts:
            self._is_verified &= part.index.checksums(number) is not None
            pages, size = part.copies(number)
            self._data += pages
            sizes.append(size)
        found = np.concatenate(sizes)
        self.size += int(found.sum())
        return found

    def table(self) -> pa.Table:
        """All its rows."""
        root: Fields = {4: b"schema", 5: Number(len(self._columns))}
        schema = Items(STRUCT, [root, *(element for column in self._columns for element in column.schema)])
        groups = [
            {1: Items(STRUCT, [Encoded(chunk) for chunk in chunks]), 2: Number(0, I64), 3: Number(rows, I64)}
            for rows, *chunks in zip(self._rows.tolist(), *self._chunks, strict=True)
        ]
        rows = Number(int(self._rows.sum()), I64)
        footer = encode({1: Number(1), 2: schema, 3: rows, 4: Items(STRUCT, groups)})
        data = b"".join((*self._data, footer, len(footer).to_bytes(4, "little"), _MAGIC))
        file = pq.ParquetFile(
            pa.BufferReader(data),
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=not self._is_verified,
        )
        return file.read(use_threads=len(data) > _LARGE)


class _WithoutDictionaries(_PageFile):
    """One of one row group."""

    def _rows_of_groups(self, parts: Sequence[Pages]) -> Longs:
        return np.array([sum(int(part.rows.sum()) for part in parts)], np.int64)

    def _copied(self, parts: Sequence[Pages], number: int, same: bytes) -> list[bytes]:
        start = self.size
        size = self._append(parts, number).sum()
        return with_longs(same, 4, _of_chunks(self._rows, np.array([size]), np.array([start])))


class _ByRowGroup(_PageFile):
    """One with a row group for each one that the pages come from."""

    def _rows_of_groups(self, parts: Sequence[Pages]) -> Longs:
        return np.concatenate([np.add.reduceat(part.rows, part.groups[1]) for part in parts])

    def _copied(self, parts: Sequence[Pages], number: int, same: bytes) -> list[bytes]:
        start = self.size
        sizes = self._append((part.with_dictionaries for part in parts), number)
        starts = start + np.cumsum(sizes) - sizes
        at = self._dictionaries(parts)
        offsets = [starts[at], starts[at] + sizes[at]]
        totals = np.add.reduceat(sizes, at)
        numbers = _of_chunks(self._rows, totals, offsets[1])
        with_one = with_longs(same, 4, [*numbers, (11, offsets[0])])
        has_one = sizes[at] > 0
        if has_one.all():
            return with_one
        without = with_longs(same, 4, numbers)
        return [one if has else other for one, other, has in zip(with_one, without, has_one.tolist(), strict=True)]

    def _dictionaries(self, parts: Sequence[Pages]) -> Longs:
        """Their places among all pages."""
        found, before = [], 0
        for part in parts:
            firsts = part.groups[1]
            found.append(before + firsts + np.arange(len(firsts)))
            before += len(part.pages) + len(firsts)
        return np.concatenate(found)


def _of_chunks(rows: Longs, sizes: Longs, data: Longs) -> list[tuple[int, Longs]]:
    """The fields of chunks' descriptions that tell their rows, bytes, and where their data begin."""
    return [(5, rows), (6, sizes), (7, sizes), (9, data)]
