"""Decimals as integers, the number of units of their last digit, with which Python computes exactly and quickly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.types import INTEGERS, Decimal
from dbt_incremental_dd.local.coercion import rescaled
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, Array, column, flat, rows_of
from dbt_incremental_dd.trace.arrow import arrow_type

_BYTES = 16
_WORD = 1 << 64


def by_units(operate: Callable[..., int | None], type: Decimal, *values: Value) -> Value:
    """``operate`` of each row's units, as units of ``type``; NULL where one of the values is NULL. Raises NotExact for
    a result that does not fit."""
    rows = rows_of(*values)
    if rows > MOST_ROWS:
        raise NotExact
    columns = [_units(value) * rows if isinstance(value.data, pa.Scalar) else _units(value) for value in values]
    found = [None if None in row else operate(*row) for row in zip(*columns, strict=True)]
    return column(_decimals(found, type), type)


def half_up(number: int, unit: int) -> int:
    """``number / unit``, rounded to the nearest integer, halves away from zero. ``unit`` is positive."""
    quotient = (2 * abs(number) + unit) // (2 * unit)
    return quotient if number >= 0 else -quotient


def words(value: Value, rows: int) -> tuple[Array, Array]:
    """For each of so many rows its units as a 64-bit integer (0 for NULL), and whether it is not NULL. Raises NotExact
    where the units need more than 64 bits."""
    array = _array(value)
    valid = np.asarray(array.is_valid())
    if value.type in INTEGERS:
        numbers = np.asarray(array.cast(pa.int64()).fill_null(0))
    else:
        low, high = _words(array)
        if not np.array_equal((low >> 63)[valid], high[valid]):
            raise NotExact
        numbers = np.where(valid, low, 0)
    return np.broadcast_to(numbers, rows), np.broadcast_to(valid, rows)


def _array(value: Value) -> pa.Array:
    """A column in one piece and in its type; of a constant, one row."""
    data = value.data
    array = pa.array([data.as_py()], data.type) if isinstance(data, pa.Scalar) else flat(data)
    if isinstance(value.type, Decimal) and array.type != arrow_type(value.type):
        array = flat(rescaled(Value(pa.chunked_array([array]), value.type), value.type))
    return array


def _words(array: pa.Array) -> tuple[Array, Array]:
    """The lower and the upper half of each decimal's bytes."""
    both = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    return both[:, 0], both[:, 1]


def _units(value: Value) -> list[int | None]:
    """Of each row of a column; of a constant, one."""
    array = _array(value)
    numbers: list[int | None]
    if value.type in INTEGERS:
        numbers = array.to_pylist()
        return numbers
    if not len(array):
        return []
    low, high = _words(array)
    if np.array_equal(low >> 63, high):
        numbers = low.tolist()
    else:
        numbers = [h * _WORD + (n % _WORD) for n, h in zip(low.tolist(), high.tolist(), strict=True)]
    if not array.null_count:
        return numbers
    valid = array.is_valid().to_pylist()
    return [number if is_valid else None for number, is_valid in zip(numbers, valid, strict=True)]


def _decimals(units: Sequence[int | None], type: Decimal) -> pa.Array:
    most = 10**type.precision
    if any(number is not None and not -most < number < most for number in units):
        raise NotExact
    data = b"".join((number or 0).to_bytes(_BYTES, "little", signed=True) for number in units)
    valid = pa.array([number is not None for number in units], pa.bool_())
    nulls = None if None not in units else valid.buffers()[1]
    return pa.Array.from_buffers(arrow_type(type), len(units), [nulls, pa.py_buffer(data)])
