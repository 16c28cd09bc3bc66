"""Set operations of arrays: NULL is an element like others, and results are in the order of what comes first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, FLOATS, Type
from dbt_incremental_dd.local.coercion import is_comparable
from dbt_incremental_dd.local.functions.arrays import element_type
from dbt_incremental_dd.local.functions.function import Functions, fixed
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.nested import has_order, numbers
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import Array, column, firsts_of_equal


@dataclass(frozen=True)
class _Pair:
    """Two columns of arrays of one type. ``keys``: of each entry, one number for its row and its value."""

    value: Value
    one: Lists
    other: Lists
    keys: tuple[Array, Array]

    @staticmethod
    def of(value: Value, other: Value) -> _Pair:
        type = element_type(value)
        if element_type(other) != type or not (is_comparable(type) or has_order(type)) or _holds_floats(type):
            raise NotExact("arrays of other types")
        lists = Lists.of(value.data), Lists.of(other.data)
        found = numbers(*(part.entries[0] for part in lists))
        codes = [pc.fill_null(part, -1).to_numpy(zero_copy_only=False) + 1 for part in found]
        size = max((int(part.max(initial=0)) for part in codes), default=0) + 1
        keys = tuple(part.rows * size + code for part, code in zip(lists, codes, strict=True))
        return _Pair(value, *lists, (keys[0], keys[1]))

    @property
    def nulls(self) -> Array:
        """The rows of which either array is NULL."""
        return np.asarray(self.one.nulls | self.other.nulls)

    def made(self, lists: Lists) -> Value:
        """Arrays of the same type; NULL where either is."""
        kept = lists.only(~self.nulls[lists.rows])
        return column(Lists(kept.lengths, self.nulls, kept.entries).arrays(), self.value.type)


def _holds_floats(type: Type) -> bool:
    return any(str(one) in type.text for one in FLOATS)


def _union(value: Value, other: Value) -> Value:
    pair = _Pair.of(value, other)
    rows = np.concatenate([pair.one.rows, pair.other.rows])
    order = np.argsort(rows, kind="stable")
    elements = pa.concat_arrays([pair.one.entries[0], pair.other.entries[0]]).take(pa.array(order))
    both = Lists(pair.one.lengths + pair.other.lengths, pair.nulls, (elements,))
    return pair.made(both.only(firsts_of_equal(np.concatenate(pair.keys)[order])))


def _except(value: Value, other: Value) -> Value:
    pair = _Pair.of(value, other)
    return pair.made(pair.one.only(firsts_of_equal(pair.keys[0]) & ~np.isin(pair.keys[0], pair.keys[1])))


def _intersection(value: Value, other: Value) -> Value:
    pair = _Pair.of(value, other)
    return pair.made(pair.one.only(firsts_of_equal(pair.keys[0]) & np.isin(pair.keys[0], pair.keys[1])))


def _overlap(value: Value, other: Value) -> Value:
    """NULL, not false, where neither is empty and an element is NULL."""
    pair = _Pair.of(value, other)
    found = pair.one.any(pair.one.known & np.isin(pair.keys[0], pair.keys[1][pair.other.known]))
    holds_null = pair.one.any(~pair.one.known) | pair.other.any(~pair.other.known)
    unknown = ~found & holds_null & (pair.one.lengths > 0) & (pair.other.lengths > 0)
    return column(pa.array(found, mask=pair.nulls | unknown), BOOLEAN)


FUNCTIONS: Functions = {
    "array_except": fixed(_except, 2),
    "array_intersect": fixed(_intersection, 2),
    "array_union": fixed(_union, 2),
    "arrays_overlap": fixed(_overlap, 2),
}
