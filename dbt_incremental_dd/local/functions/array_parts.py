"""Functions that leave out elements of arrays, add some, or look for one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.types import LONG, VOID
from dbt_incremental_dd.core.types import Array as ArrayType
from dbt_incremental_dd.local.coercion import widened
from dbt_incremental_dd.local.functions.arrays import element_type, equal_elements
from dbt_incremental_dd.local.functions.function import Functions, fixed, zoned
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import column, constant_int, flat_column


def _of(value: Value) -> Lists:
    element_type(value)
    return Lists.of(value.data)


def _compact(value: Value) -> Value:
    """Without NULLs."""
    lists = _of(value)
    return column(lists.only(lists.known).arrays(), value.type)


def _without(zone: str, value: Value, wanted: Value) -> Value:
    """Without the elements that are equal to a value."""
    lists = _of(value)
    equals, nulls = equal_elements(zone, lists, element_type(value), wanted)
    kept = lists.only(~equals & ~nulls[lists.rows])
    return column(Lists(kept.lengths, lists.nulls | nulls, kept.entries).arrays(), value.type)


def _position(zone: str, value: Value, wanted: Value) -> Value:
    """Counted from 1; 0 where there is none."""
    lists = _of(value)
    equals, nulls = equal_elements(zone, lists, element_type(value), wanted)
    return column(pa.array(lists.first(equals) + 1, pa.int64(), mask=lists.nulls | nulls), LONG)


def _slice(value: Value, start: Value, length: Value) -> Value:
    """From a constant position on, counted from 1 or from the end; nothing where that is before the first element."""
    lists, first, count = _of(value), constant_int(start), constant_int(length)
    if not first or count < 0:
        raise NotExact("a slice")
    begin = np.full(len(lists.lengths), first - 1) if first > 0 else lists.lengths + first
    begins, places = begin[lists.rows], lists.places
    return column(lists.only((begins >= 0) & (places >= begins) & (places < begins + count)).arrays(), value.type)


def _flattened(value: Value) -> Value:
    """The elements of all elements; NULL where one of these is."""
    type, outer = element_type(value), _of(value)
    if not isinstance(type, ArrayType):
        raise NotExact
    inner = Lists.of(outer.entries[0])
    nulls = outer.nulls | outer.any(inner.nulls)
    rows = outer.rows[inner.rows]
    lengths = np.bincount(rows, minlength=len(nulls))
    found = Lists(lengths, nulls, inner.entries).only(~nulls[rows])
    return column(Lists(found.lengths, nulls, found.entries).arrays(), type)


def _with(value: Value, added: Value, *, is_last: bool) -> Value:
    """One more element, which may be NULL."""
    type, lists = element_type(value), _of(value)
    if added.type not in (type, VOID):
        raise NotExact("an element of another type")
    added = widened(added, type)
    rows = len(lists.lengths)
    elements = pa.concat_arrays([lists.entries[0], flat_column(added, rows)])
    of = np.concatenate([lists.rows, np.arange(rows)])
    place = np.concatenate([np.zeros(len(lists.rows)), np.full(rows, 1 if is_last else -1)])
    order = np.lexsort((place, of))
    kept = Lists(lists.lengths + 1, lists.nulls, (elements.take(pa.array(order)),))
    kept = kept.only(~lists.nulls[kept.rows])
    return column(kept.arrays(), value.type)


def _appended(value: Value, added: Value) -> Value:
    return _with(value, added, is_last=True)


def _prepended(value: Value, added: Value) -> Value:
    return _with(value, added, is_last=False)


FUNCTIONS: Functions = {
    "array_append": fixed(_appended, 2),
    "array_compact": fixed(_compact, 1),
    "array_position": zoned(_position, 2),
    "array_prepend": fixed(_prepended, 2),
    "array_remove": zoned(_without, 2),
    "flatten": fixed(_flattened, 1),
    "slice": fixed(_slice, 3),
}
