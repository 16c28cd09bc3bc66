"""Selects the files of a trace that a read needs, by the log alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.time import Time

KeyValues = Mapping[str, Sequence[Any]]
"""Sorted values for some columns; a row matches if it has one of them in every column."""


def between(files: Iterable[DataFile], after: Time, up_to: Time) -> tuple[DataFile, ...]:
    """Files that may hold updates with ``after < dd_time <= up_to``."""
    return tuple(file for file in files if file.last > after and file.first <= up_to)


def matching(files: Iterable[DataFile], keys: KeyValues) -> tuple[DataFile, ...]:
    """Files that may hold a matching row, by their bounds."""
    return tuple(file for file in files if all(may_hold(file.bounds.get(name), keys[name]) for name in keys))


def may_hold(bounds: tuple[Any, Any] | None, values: Sequence[Any]) -> bool:
    """Whether one of the sorted values may lie within (minimum, maximum); None: unknown."""
    if bounds is None:
        return True
    low, high = bounds
    if values and type(values[0]) is not type(low):
        return True
    position = bisect_left(values, low)
    return position < len(values) and values[position] <= high


def inserts_only(files: Iterable[DataFile]) -> bool:
    """Whether the files hold insertions only, so that sums are positive without consolidation."""
    return all(file.inserts_only for file in files)
