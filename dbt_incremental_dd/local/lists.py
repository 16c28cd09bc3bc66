"""Arrays and maps of rows as what they hold, value behind value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.local.vectors import Array, flat


@dataclass(frozen=True)
class Lists:
    """``lengths``: how many entries each row has, which are none where it is NULL (``nulls``); ``entries``: those of
    all rows, in columns of equal length: an array's elements, or a map's keys and values."""

    lengths: Array
    nulls: Array
    entries: tuple[pa.Array, ...]

    @staticmethod
    def of(column: pa.ChunkedArray | pa.Array) -> Lists:
        """Those of a column of arrays or maps."""
        array = flat(column)
        nulls = pc.is_null(array).to_numpy(zero_copy_only=False)
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        lengths, there = np.diff(offsets), (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
        entries = tuple(part.slice(offsets[0], offsets[-1] - offsets[0]) for part in there)
        found = Lists(lengths, nulls, entries)
        if not lengths[nulls].any():
            return found
        hidden = found.only(~nulls[found.rows])  # what a NULL stands over
        return Lists(hidden.lengths, nulls, hidden.entries)

    @cached_property
    def rows(self) -> Array:
        """Of each entry, the row that it is of."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def starts(self) -> Array:
        """Of each row, the place of its first entry."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def places(self) -> Array:
        """Of each entry, its place in its row, from 0 on."""
        return np.arange(len(self.rows)) - self.starts[self.rows]

    @cached_property
    def known(self) -> Array:
        """Which entries are not NULL in the first of their columns."""
        return np.asarray(pc.is_valid(self.entries[0]).to_numpy(zero_copy_only=False))

    def only(self, mask: Array) -> Lists:
        """Some of the entries."""
        lengths = np.bincount(self.rows[mask], minlength=len(self.lengths))
        return Lists(lengths, self.nulls, tuple(part.filter(pa.array(mask)) for part in self.entries))

    def taken(self, places: Array) -> Lists:
        """The entries in another order, in which those of a row stay side by side and rows in their order."""
        return Lists(self.lengths, self.nulls, tuple(part.take(pa.array(places)) for part in self.entries))

    def at(self, positions: Array, entry: int = 0) -> pa.Array:
        """Each row's entry at a position, counted from 0; NULL where there is none."""
        there = (positions >= 0) & (positions < self.lengths)
        places = np.where(there, self.starts + positions, 0)
        return self.entries[entry].take(pa.array(places, pa.int64(), mask=~there))

    def first(self, mask: Array) -> Array:
        """Of each row, the position of the first of its entries for which the mask is true; -1 where there is none."""
        found = np.full(len(self.lengths), -1, np.int64)
        places = np.flatnonzero(mask)[::-1]
        found[self.rows[places]] = places - self.starts[self.rows[places]]
        return found

    def any(self, mask: Array) -> Array:
        """Whether it is true of some entry of each row."""
        return np.bincount(self.rows[mask], minlength=len(self.lengths)) > 0

    def arrays(self) -> Any:
        """The first of the entries' columns as a column of arrays."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int32)
        (elements, *_) = self.entries
        kind = pa.list_(pa.field("element", elements.type))
        mask = pa.array(self.nulls) if self.nulls.any() else None
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=kind, mask=mask)
