"""Nested values by their equality and order: as numbers, which Arrow groups, looks up and sorts, as it does not
structs, arrays or maps.

Both are Spark's: NULL equals NULL and is the least, structs and arrays are compared part by part, and a map's entries
have no order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce as fold
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import NESTED, Type
from dbt_incremental_dd.local.floats import ranks
from dbt_incremental_dd.local.vectors import flat, row_numbers
from dbt_incremental_dd.logical.sql_types import is_orderable
from dbt_incremental_dd.trace.arrow import arrow_type

_Numbers = npt.NDArray[np.int64]
_NULL = np.int64(-1)
"""The number of NULL."""


def is_nested(column: Any) -> bool:
    """Whether an array's values have parts."""
    return bool(pa.types.is_nested(column.type))


def has_order(type: Type) -> bool:
    """Whether it is a nested type whose values have an order."""
    return isinstance(type, NESTED) and arrow_type(type) is not None and is_orderable(type)


def numbers(*arrays: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """BIGINTs for the values of arrays of one nested type: equal where, and only where, these are equal, and in their
    order, unless they hold maps; from 0 on, without gaps, and NULL for NULL."""
    ends = np.cumsum([len(array) for array in arrays])[:-1]
    found = _numbers(pa.concat_arrays([flat(array) for array in arrays]))
    return [pa.array(part, mask=part == _NULL) for part in np.split(found, ends)]


def encoded(table: pa.Table, names: Sequence[str]) -> tuple[pa.Table, Mapping[str, pa.Array]]:
    """The table with numbers in place of those of the columns that are nested; and for each of these the value that
    each number stands for."""
    values = {}
    for name in names:
        if is_nested(table[name]):
            column = flat(table[name])
            (found,) = numbers(column)
            table = table.set_column(table.column_names.index(name), name, found)
            values[name] = column.take(_firsts(found))
    return table, values


def decoded(table: pa.Table, values: Mapping[str, pa.Array]) -> pa.Table:
    """The table with the values in place of the numbers."""
    for name, known in values.items():
        table = table.set_column(table.column_names.index(name), name, known.take(flat(table[name])))
    return table


def _firsts(found: pa.Array) -> pa.Array:
    """The place at which each number comes first."""
    there = pc.is_valid(found)
    _, firsts = np.unique(found.drop_null().to_numpy(), return_index=True)
    return row_numbers(len(found)).filter(there).take(pa.array(firsts, pa.int64()))


def _numbers(array: pa.Array) -> _Numbers:
    """Dense, apart from NULL's."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_numbers(part) for part in array.flatten()]
        found = fold(_pairs, parts) if parts else np.zeros(len(array), np.int64)
    elif pa.types.is_map(kind):
        found = _of_entries(array, _pairs(_numbers(array.keys), _numbers(array.items)), is_sorted=True)
    elif pa.types.is_list(kind):
        found = _of_entries(array, _numbers(array.values), is_sorted=False)
    else:
        found = _ranks(array.cast(pa.int8()) if pa.types.is_boolean(kind) else ranks(array))
    return _dense(found, array)


def _dense(found: _Numbers, array: pa.Array) -> _Numbers:
    """From 0 on, without gaps, for values that are not NULL."""
    nulls = pc.is_null(array).to_numpy(zero_copy_only=False)
    made = np.full(len(array), _NULL)
    made[~nulls] = np.unique(found[~nulls], return_inverse=True)[1]
    return made


def _ranks(array: pa.Array) -> _Numbers:
    found: _Numbers = pc.rank(array, "ascending", tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _pairs(one: _Numbers, other: _Numbers) -> _Numbers:
    """A number for each pair of numbers, in the order of the first ones, then in that of the others."""
    least = int(other.min(initial=0))
    size = int(other.max(initial=0)) - least + 1
    found: _Numbers = np.unique(one * size + (other - least), return_inverse=True)[1].astype(np.int64)
    return found


def _of_entries(array: pa.Array, entries: _Numbers, *, is_sorted: bool) -> _Numbers:
    """A number for each row, whose entries have these; ``is_sorted``: whatever their order. Numbers are compared byte
    by byte, so the greatest come first in them, and none is negative."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    first, lengths = offsets[0], np.diff(offsets)
    own = entries[first : offsets[-1]]
    if is_sorted:
        rows = np.repeat(np.arange(len(lengths)), lengths)
        own = own[np.lexsort((own, rows))]
    data = pa.py_buffer((own - _NULL).astype(">u8").tobytes())
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(((offsets - first) * own.itemsize).tobytes()), data]
    )
    return _ranks(texts)
