"""Finds the rows of some keys in sorted files by reading only the pages that may hold them.

The index beside a file says which these are. The keys' columns are read first: pages without a match cost no more.
"""

from __future__ import annotations

import logging
import mmap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from functools import reduce as fold
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs

from dbt_incremental_dd.core.reads import count
from dbt_incremental_dd.duck.connections import is_imported
from dbt_incremental_dd.parquet.page_file import Longs, Pages, decoded, require_intact
from dbt_incremental_dd.parquet.page_index import FileColumn, PageIndex, Values, comparable, open_pages
from dbt_incremental_dd.storage import downloads
from dbt_incremental_dd.storage.part_copy import Gap, OpenPart, PartCopy, cost

_LOG = logging.getLogger(__name__)
"""Logs what a probe read at DEBUG, as ``read_rows`` and ``read_bytes``."""
_LARGEST_SHARE = 0.5
"""Of a file's pages. Files of which more are needed are read by whole chunks."""
_MANY, _LARGEST_SHARE_OF_MANY = 5_000, 0.08
"""More pages than either are not verified before DuckDB reads the files."""
_PAGE_US, _DICTIONARY_US = 5.0, 15.0
"""Microseconds for a column's page, beyond what DuckDB takes to find a key's value, and for each chunk that has a
dictionary. As those below measured on one machine: their ratios count."""
_AT_ONCE = 256
"""Pages of columns that are read together: each further reading takes about as long as so many."""
_FILES_AT_ONCE = 256
"""That are open at a time: a process may have a thousand."""
_DUCKDB_US, _IMPORT_US, _SCANNED_US = 3_000.0, 100_000.0, 1.5
"""For DuckDB's query, for importing it, and for each page of the files, since it reads the keys' columns whole."""
_VERIFIED_US = 3.0
"""For each column's page that is verified before DuckDB reads the files."""
_FETCHED_US = 0.01
"""For each byte that is fetched from object storage."""


def probe_pages(
    filesystem: pafs.FileSystem,
    paths: Sequence[str],
    columns: pa.Schema,
    keys: Mapping[str, Sequence[Any]],
    parts: Mapping[str, PartCopy] | None = None,
) -> tuple[list[pa.Table], list[str]]:
    """The matching rows of the files that have an index, and the paths of the others. A row matches if each key column
    has one of its values. ``parts``: of those files that are not on this disk, of which pages may be fetched.

    Raises OSError for a page that is not as it was written.
    """
    if not isinstance(filesystem, pafs.LocalFileSystem) or not keys:
        return [], list(paths)
    try:
        return _probe(paths, columns, keys, parts or {})
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        if "checksum" in str(error).lower():
            raise
        # The index is damaged; the file itself may be intact.
        return [], list(paths)


def _probe(
    paths: Sequence[str], columns: pa.Schema, keys: Mapping[str, Sequence[Any]], parts: Mapping[str, PartCopy]
) -> tuple[list[pa.Table], list[str]]:
    others: list[str] = []
    alike: dict[tuple[str, ...], list[_Candidates]] = {}
    key_values = {name: pa.array(values, columns.field(name).type) for name, values in keys.items()}
    sought = {name: _sought(values) for name, values in key_values.items()}
    found = {path: _candidate_pages(path, columns.names, sought, parts.get(path)) for path in paths}
    picked = [one for one in found.values() if one is not None and len(one.pages)]
    if _is_slower(picked):
        if _are_verified(picked):
            for candidates in (one for one in picked if one.part is None):
                require_intact([candidates.mapped()], candidates.fields)
        return [], [path for path, one in found.items() if one is None or len(one.pages)]
    downloads.all_of(one.part.read_whole for one in picked if one.part is not None and one.is_cheaper_whole)
    for path, one in found.items():
        if one is None:
            others.append(path)
        elif len(one.pages):
            alike.setdefault(tuple(one.index.stored(name) for name in columns.names), []).append(one)
    together = (
        candidates[start : start + _FILES_AT_ONCE]
        for candidates in alike.values()
        for start in range(0, len(candidates), _FILES_AT_ONCE)
    )
    return [_rows(candidates, columns, key_values) for candidates in together], others


def _is_slower(candidates: Sequence[_Candidates]) -> bool:
    """Whether DuckDB is quicker, which reads whole chunks in several threads, but each of them once."""
    pages = sum(one.cost for one in candidates)
    scan = _DUCKDB_US + sum(_SCANNED_US * one.total + one.fetching_whole for one in candidates)
    if _are_verified(candidates):
        scan += _VERIFIED_US * sum(one.columns_pages for one in candidates)
    return pages > scan + (0.0 if is_imported() else _IMPORT_US)


def _are_verified(candidates: Sequence[_Candidates]) -> bool:
    """Whether the pages are, if DuckDB reads them: it verifies nothing. Many are not."""
    count = sum(len(one.pages) for one in candidates)
    return count <= _MANY or count <= _LARGEST_SHARE_OF_MANY * sum(one.total for one in candidates)


def _rows(candidates: Sequence[_Candidates], columns: pa.Schema, key_values: Mapping[str, pa.Array]) -> pa.Table:
    """The matching rows: of the keys' columns all pages are read, of the others those that hold any, unless they are
    so few that reading all of them at once takes no longer."""
    parts = [one.mapped() for one in candidates]
    fields = {field.name: field for field in candidates[0].fields}
    is_little = sum(len(part.pages) for part in parts) * len(fields) <= _AT_ONCE
    keys, size = decoded(parts, [fields[name] for name in (columns.names if is_little else key_values)])
    masks = [pc.is_in(keys[name].cast(values.type), value_set=values) for name, values in key_values.items()]
    matches = np.asarray(fold(pc.and_, masks).to_numpy())
    rows = np.concatenate([part.rows for part in parts])
    page_of = np.repeat(np.arange(len(rows)), rows)
    chosen = np.zeros(len(rows), np.bool_)
    chosen[page_of[matches]] = True
    table = keys.filter(pa.array(matches))
    others = [name for name in columns.names if name not in keys.column_names]
    if others and chosen.any():
        splits = np.split(chosen, np.cumsum([len(part.pages) for part in parts])[:-1])
        wanted = [part.only(few) for part, few in zip(parts, splits, strict=True) if few.any()]
        found, more = decoded(wanted, [fields[name] for name in others])
        found, size = found.filter(pa.array(matches[chosen[page_of]])), size + more
        columns_of = dict(zip((*table.column_names, *others), (*table.columns, *found.columns), strict=True))
        table = pa.table(columns_of)
    elif others:
        table = columns.empty_table()
    size += sum(one.index.take_read_bytes() for one in candidates)
    count(len(matches), table.num_rows, size)
    _LOG.debug("read %d rows of pages", len(matches), extra={"read_rows": len(matches), "read_bytes": size})
    return table.select(columns.names).cast(columns)


def pages_to_read(filesystem: pafs.FileSystem, paths: Iterable[str], column: str, values: pa.Array) -> int | None:
    """How many pages of the files may hold one of the values; None if one has no index of this column."""
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return None
    count, sought = 0, _sought(values)
    for path in paths:
        index = open_pages(path)
        pages = None if index is None else _with_any(index, column, sought)
        if pages is None:
            return None
        count += len(pages)
    return count


@dataclass(frozen=True)
class _Candidates:
    """The pages of one file that may hold the keys, as rows of its index."""

    path: str
    index: PageIndex
    fields: tuple[FileColumn, ...]
    pages: Longs
    part: PartCopy | None

    @property
    def total(self) -> int:
        """How many pages the file has."""
        return int(np.count_nonzero(self.index.are_pages))

    @property
    def cost(self) -> float:
        """Of reading them (us)."""
        groups, _ = self.index.groups(self.pages)
        dictionaries = sum(int(np.count_nonzero(self.index.has_dictionary(n)[groups])) for n in self._numbers)
        read = _PAGE_US * self.columns_pages + _DICTIONARY_US * dictionaries
        return read + (self.fetching_whole if self.is_cheaper_whole else _FETCHED_US * cost(self._gaps))

    @property
    def is_cheaper_whole(self) -> bool:
        """Whether the file takes no longer to fetch than its pages that are not there."""
        return self.part is not None and self.part.is_cheaper_whole(self._gaps)

    @property
    def fetching_whole(self) -> float:
        """What that takes (us)."""
        return 0.0 if self.part is None else _FETCHED_US * cost([(0, self.part.size)])

    @cached_property
    def _gaps(self) -> Sequence[Gap]:
        """What would have to be fetched."""
        if self.part is None:
            return ()
        part = self.part.opened()
        return part.gaps(self._of(part.view).ranges(self.fields))

    @property
    def columns_pages(self) -> int:
        """How many pages they are, those of each leaf column counted."""
        return len(self.pages) * len(self._numbers)

    @property
    def _numbers(self) -> list[int]:
        return [number for field in self.fields for number in field.numbers]

    def mapped(self) -> Pages:
        """With the file's bytes."""
        if self.part is not None and not self.is_cheaper_whole:
            part = self.part.opened()
            return self._of(part.view, part)
        with open(self.path, "rb") as file:
            return self._of(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))

    def _of(self, source: memoryview, part: OpenPart | None = None) -> Pages:
        return Pages(self.path, source, self.index, self.pages, part)


def _candidate_pages(
    path: str, names: Sequence[str], sought: Mapping[str, Values | None], part: PartCopy | None
) -> _Candidates | None:
    """The pages to read; None if the file has no index, lacks a column, or would have to be read for the most part."""
    index = open_pages(path)
    name = None if index is None else next((name for name in sought if index.is_sorted_by(name)), None)
    if index is None or name is None:
        return None
    fields = [index.field(column) for column in names]
    pages = _with_any(index, name, sought[name])
    if pages is None or None in fields:
        return None
    part = None if part is None or part.is_whole else part
    if part is not None and not index.has_checksums:  # nobody knows which pages are there
        return None
    found = _Candidates(path, index, tuple(field for field in fields if field), pages, part)
    return None if len(pages) > _LARGEST_SHARE * found.total else found


def _sought(values: pa.Array) -> Values | None:
    """Values as an index has them, sorted; None where it has no such ones."""
    found = comparable(values)
    return None if found is None else np.sort(found)


def _with_any(index: PageIndex, column: str, sought: Values | None) -> Longs | None:
    """The pages that may hold one of the values; None if the file is not sorted by the column, or has other values."""
    firsts = index.keys(column) if index.is_sorted_by(column) else None
    if firsts is None or sought is None or sought.dtype.kind != firsts.dtype.kind:
        return None
    return np.flatnonzero(_may_hold(firsts, sought) & index.are_pages)


def _may_hold(firsts: Values, values: Values) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row but the last, whether one of the values lies between its first value and the next row's."""
    return np.searchsorted(values, firsts[1:], "right") > np.searchsorted(values, firsts[:-1], "left")
