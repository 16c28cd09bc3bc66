"""Values as NumPy arrays and back, and functions that are evaluated row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.trace.arrow import arrow_type

Array = npt.NDArray[Any]
MOST_ROWS = 400_000
"""Maximum number of rows: of more, Spark may be quicker, even where its session is not open yet."""


def rows_of(*values: Value) -> int:
    """How many rows the columns among the values have; there is one at least."""
    return next(len(value.data) for value in values if not isinstance(value.data, pa.Scalar))


def by_row(operate: Callable[..., Any], type: Type, *values: Value) -> Value:
    """``operate`` of each row's values; NULL where one of them is NULL. ValueError in a row leaves all to Spark."""
    rows = rows_of(*values)
    if rows > MOST_ROWS:
        raise NotExact
    columns = [
        [value.data.as_py()] * rows if isinstance(value.data, pa.Scalar) else value.data.to_pylist() for value in values
    ]
    try:
        found = [None if None in row else operate(*row) for row in zip(*columns, strict=True)]
        return column(pa.array(found, arrow_type(type)), type)
    except (ValueError, OverflowError) as error:
        raise NotExact from error


def column(data: pa.Array | pa.ChunkedArray, type: Type) -> Value:
    return Value(data if isinstance(data, pa.ChunkedArray) else pa.chunked_array([data]), type)


def row_numbers(count: int) -> pa.Array:
    """0, 1, 2, ...: BIGINT."""
    return pa.array(np.arange(count, dtype=np.int64))


def constant_int(value: Value) -> int:
    """The integer that a constant is. Raises NotExact."""
    found = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise NotExact
    return found


def constant_text(value: Value) -> str:
    """The text that a constant is. Raises NotExact."""
    found = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if not isinstance(found, str):
        raise NotExact
    return found


def require(value: Value, *types: Type) -> None:
    if value.type not in types:
        raise NotExact


def require_all(holds: pa.ChunkedArray | pa.Scalar) -> None:
    """Of every value that is not NULL."""
    found = holds if isinstance(holds, pa.Scalar) else pc.all(holds)
    if found.as_py() is False:
        raise NotExact


def require_ascii(value: Value) -> None:
    """What other characters mean depends on the version of Unicode."""
    require_all(pc.string_is_ascii(value.data))


def datetimes(value: Value) -> Array:
    """Dates as ``datetime64[D]``, moments as ``datetime64[us]``; NULL is NaT. One of a constant."""
    data = value.data
    flat = pa.array([data.as_py()], data.type) if isinstance(data, pa.Scalar) else data
    if pa.types.is_timestamp(flat.type) and flat.type.tz:
        flat = flat.cast(pa.int64()).cast(pa.timestamp("us"))
    found: Array = flat.to_numpy() if isinstance(flat, pa.ChunkedArray) else flat.to_numpy(zero_copy_only=False)
    return found


def integers(value: Value) -> tuple[Array, Array]:
    """As 64 bits, and where they are NULL. One of a constant."""
    data = value.data
    flat = pa.chunked_array([pa.array([data.as_py()], data.type)]) if isinstance(data, pa.Scalar) else data
    nulls: Array = pc.is_null(flat).to_numpy()
    return pc.fill_null(flat, 0).to_numpy().astype(np.int64), nulls


def floor_divided(data: pa.ChunkedArray | pa.Scalar, divisor: int) -> pa.ChunkedArray | pa.Scalar:
    """Integers by a positive constant, rounded down."""
    quotient = pc.divide(data, pa.scalar(divisor, data.type))
    rest = pc.subtract(data, pc.multiply(quotient, pa.scalar(divisor, data.type)))
    return pc.subtract(quotient, pc.cast(pc.less(rest, 0), data.type))


def repeated(value: Value, rows: int) -> pa.ChunkedArray:
    """A column of so many rows."""
    if isinstance(value.data, pa.Scalar):
        return pa.chunked_array([pa.repeat(value.data, rows)] if rows else [], value.data.type)
    return value.data


def flat_column(value: Value, rows: int) -> pa.Array:
    """A value of so many rows as one array of its type."""
    return flat(pa.chunked_array(repeated(value, rows).chunks, arrow_type(value.type)))


def firsts_of_equal(*numbers: Array) -> Array:
    """A mask of places: those that come first of the places at which all of the arrays have the same numbers."""
    mask = np.zeros(len(numbers[0]), bool)
    mask[np.unique(np.stack(numbers), axis=1, return_index=True)[1]] = True
    return mask


def flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
