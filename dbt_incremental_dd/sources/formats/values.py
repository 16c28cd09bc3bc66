"""Values inside records that are looked at in every column, and in what columns nest."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds since 1970 of the beginning of year 1 and the last one of year 9999."""
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
YEARS = "the years 1 to 9999"
"""Of the calendar that SQL, Python and Arrow's readers share."""


def is_infinite(value: Column, dtype: DataType) -> Column | None:
    """Whether a number is infinite; None of a type that holds no such number."""

    def one(value: Column, dtype: DataType) -> Column | None:
        return F.abs(value) == F.lit(float("inf")) if isinstance(dtype, FloatType | DoubleType) else None

    return _inside(value, dtype, one)


def is_far(value: Column, dtype: DataType) -> Column | None:
    """Whether a date or a timestamp is outside the years 1 to 9999; None of a type that holds none."""

    def one(value: Column, dtype: DataType) -> Column | None:
        if isinstance(dtype, DateType):
            bounds = F.expr("DATE'0001-01-01'"), F.expr("DATE'9999-12-31'")
        elif isinstance(dtype, TimestampType | TimestampNTZType):
            name = "TIMESTAMP_NTZ" if isinstance(dtype, TimestampNTZType) else "TIMESTAMP"
            zone = "" if name == "TIMESTAMP_NTZ" else " UTC"
            first, last = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
            bounds = F.expr(f"{name}'{first}{zone}'"), F.expr(f"{name}'{last}{zone}'")
        else:
            return None
        return (value < bounds[0]) | (value > bounds[1])

    return _inside(value, dtype, one)


def has_far(column: pa.ChunkedArray) -> bool:
    """Whether any value is outside the years 1 to 9999."""
    kind = column.type
    if pa.types.is_date32(kind):
        numbers, unit = column.cast(pa.int32()).cast(pa.int64()), 1
        first, last = _FIRST // 86_400, _LAST // 86_400
    elif pa.types.is_timestamp(kind):
        numbers, unit = column.cast(pa.int64()), _UNITS[kind.unit]
        first, last = _FIRST, _LAST
    else:
        return False
    outside = pc.or_(pc.less(numbers, first * unit), pc.greater_equal(numbers, (last + 1) * unit))
    return bool(pc.any(outside).as_py())


def _inside(value: Column, dtype: DataType, one: Callable[[Column, DataType], Column | None]) -> Column | None:
    """Whether it holds for the value, or for a field or an element of it; NULL counts as not."""
    if isinstance(dtype, StructType):
        fields = (_inside(value[field.name], field.dataType, one) for field in dtype.fields)
        found = [field for field in fields if field is not None]
        return reduce(or_, found) if found else None
    if isinstance(dtype, ArrayType):
        element = dtype.elementType
        if _inside(value, element, one) is None:
            return None
        return F.coalesce(F.exists(value, lambda item: _held(_inside(item, element, one))), F.lit(False))
    itself = one(value, dtype)
    return None if itself is None else F.coalesce(itself, F.lit(False))


def _held(found: Column | None) -> Column:
    return F.lit(False) if found is None else found
