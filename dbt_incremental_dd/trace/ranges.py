"""Merges a large trace range by range: files of disjoint ranges of the column that a trace is sorted by stay as they
are where nothing among the others falls into their range. So compaction costs what has changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows

_ROWS = 8_000_000
_BYTES = 1 << 30
"""Maximum rows and size of the files that are read at once, which are compressed."""


@dataclass(frozen=True)
class Ranges:
    """``loose``: the files that form no range. ``parts``: for each range that has to be merged its own files, and the
    loose ones' updates that belong to it. What is equal is in one range."""

    loose: Sequence[DataFile]
    parts: Iterator[tuple[Sequence[DataFile], pa.Table]]


@dataclass
class _Range:
    """Files of disjoint values, in order; ``end``: how many of the loose updates come before the next range's."""

    files: list[DataFile]
    end: int

    @property
    def rows(self) -> int:
        return total_rows(self.files)


def ranges(
    storage: Storage, uri: str, files: Sequence[DataFile], schema: Schema, column: str, rows_per_file: int
) -> Ranges | None:
    """``column``: the first one that the files are sorted by. ``rows_per_file``: of those that are written.

    None where files do not form ranges, or the others are too many to be read. Raises OSError for a file that is not as
    it was written.
    """
    disjoint, loose = _split(files, column)
    most = min(storage.thresholds.built_rows, _ROWS)
    if len(disjoint) < 2 or total_rows(loose) > most or sum(file.bytes for file in loose) > _BYTES:
        return None
    if any(arrow_type(one.type) is None for one in schema):
        return None
    updates = read_files(storage, uri, loose, schema).sort_by([(column, "ascending")]).combine_chunks()
    return Ranges(loose, _parts(_ranges(disjoint, updates[column], column, rows_per_file), updates, column))


def _parts(found: Sequence[_Range], updates: pa.Table, column: str) -> Iterator[tuple[Sequence[DataFile], pa.Table]]:
    start = 0
    nulls = len(updates) - updates[column].null_count
    for number, part in enumerate(found):
        end = nulls if number == len(found) - 1 else part.end
        if len(part.files) > 1 or end > start:
            yield part.files, updates.slice(start, end - start)
        start = end
    if nulls < len(updates):  # which no file of a range has
        yield (), updates.slice(nulls)


def _split(files: Sequence[DataFile], column: str) -> tuple[list[DataFile], list[DataFile]]:
    """Files of insertions whose ranges meet in their ends at most, by value, the largest files first to be among them;
    and all others."""
    disjoint: list[DataFile] = []
    loose: list[DataFile] = []
    by_value = _by_value(column)
    for file in sorted(files, key=attrgetter("rows"), reverse=True):
        bounds = file.bounds.get(column)
        if not file.inserts_only or bounds is None or (disjoint and not _is_like(bounds, disjoint[0].bounds[column])):
            loose.append(file)
            continue
        at = bisect_left(disjoint, by_value(file), key=by_value)
        beside = disjoint[max(at - 1, 0) : at + 1]
        if all(_is_apart(bounds, other.bounds[column]) for other in beside):
            insort(disjoint, file, key=by_value)
        else:
            loose.append(file)
    return disjoint, loose


def _by_value(column: str) -> Any:
    return lambda file: file.bounds[column]


def _is_like(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    return type(one[0]) is type(other[0])


def _is_apart(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    return bool(one[1] <= other[0] or other[1] <= one[0])


def _ranges(disjoint: Sequence[DataFile], values: pa.ChunkedArray, column: str, rows_per_file: int) -> list[_Range]:
    """Each large file by itself, small ones together; and what a loose value that two of them have puts together."""
    found: list[_Range] = []
    for file in disjoint:
        low, high = file.bounds[column]
        end = _position(values, high, after=True)
        shares = bool(found) and _has(values, low) and found[-1].files[-1].bounds[column][1] == low
        is_small = bool(found) and found[-1].rows + file.rows <= rows_per_file
        if shares or is_small:
            found[-1].files.append(file)
            found[-1].end = end
        else:
            found.append(_Range([file], end))
    return found


def _position(values: pa.ChunkedArray, value: Any, *, after: bool) -> int:
    """The number of sorted values that are less, or with ``after`` not greater. NULLs are last."""
    low, high = 0, len(values) - values.null_count
    while low < high:
        middle = (low + high) // 2
        found = values[middle].as_py()
        if found < value or (after and found == value):
            low = middle + 1
        else:
            high = middle
    return low


def _has(values: pa.ChunkedArray, value: Any) -> bool:
    at = _position(values, value, after=False)
    return at < len(values) and values[at].as_py() == value
