"""Types as Spark derives them from those of operands, and values in a wider type.

Rules of decimals: Spark's `DecimalPrecision`, which are those of Hive and SQL Server.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from functools import reduce as fold

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    FLOATS,
    INTEGER,
    INTEGERS,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Decimal,
    Type,
)
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import by_row, repeated, require_all
from dbt_incremental_dd.trace.arrow import arrow_type, cast_decimals

_AS_DECIMALS = {BYTE: Decimal(3, 0), SHORT: Decimal(5, 0), INTEGER: Decimal(10, 0), LONG: Decimal(20, 0)}
_COMPARED = (STRING, DATE, BOOLEAN, DOUBLE, TIMESTAMP, TIMESTAMP_NTZ)
MOST_DIGITS = 38
_BELOW_FLOAT, _MIDDLE = (1 << 29) - 1, 1 << 28
"""The bits of a double that a float does not have, and as they are in the middle between two floats."""
_LEAST_FLOAT = 2.0**-126


def is_comparable(type: Type) -> bool:
    """Whether values of the type are compared alike here and in Spark."""
    return isinstance(type, Decimal) or type in INTEGERS or type in _COMPARED


def is_number(type: Type) -> bool:
    """Of those that are computed with on the driver."""
    return isinstance(type, Decimal) or type in INTEGERS or type in FLOATS


def common_type(types: Sequence[Type]) -> Type:
    """The type that holds all values of these: of a CASE, of COALESCE. Raises NotExact where that is not exact."""
    found = [type for type in dict.fromkeys(types) if type != VOID]
    return fold(wider, found) if found else VOID


def wider(one: Type, other: Type) -> Type:
    """The type that holds the values of both; of decimals too wide for that, but for their last digits."""
    if one == other:
        return one
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.index)
    if (one in FLOATS or other in FLOATS) and is_number(one) and is_number(other):
        return FLOAT if {one, other} <= {FLOAT, *INTEGERS} else DOUBLE
    a, b = as_decimal(one), as_decimal(other)
    whole, scale = whole_digits(a, b), max(a.scale, b.scale)
    lost = max(whole + scale - MOST_DIGITS, 0)
    return Decimal(whole + scale - lost, scale - lost)


def widened(value: Value, type: Type) -> Value:
    """The same value in a type that holds it; as a double, the nearest one."""
    if value.type == type:
        return value
    if value.type == VOID:
        return Value(pa.scalar(None, arrow_type(type)), type)
    if type == DOUBLE:
        return as_double(value)
    if isinstance(type, Decimal):
        return Value(rescaled(value, type), type)
    return Value(pc.cast(value.data, arrow_type(type)), type)


def compared(value: Value, type: Type) -> Value:
    """The value as values of the type are compared: FLOAT as the same DOUBLE. Raises NotExact for a type of which Arrow
    might find otherwise."""
    if type == FLOAT:
        return as_double(widened(value, type))
    if not is_comparable(type):
        raise NotExact
    return widened(value, type)


def as_double(value: Value) -> Value:
    """Of a number. Arrow's own cast of decimals does not always give the nearest."""
    if value.type in INTEGERS or value.type == FLOAT:
        return Value(pc.cast(value.data, pa.float64(), safe=False), DOUBLE)
    if value.type == DOUBLE:
        return value
    as_decimal(value.type)
    if isinstance(value.data, pa.Scalar):
        number = value.data.as_py()
        return Value(pa.scalar(None if number is None else float(number), pa.float64()), DOUBLE)
    return by_row(float, DOUBLE, value)


def as_float(value: Value) -> Value:
    """Of a number, the nearest one. Raises NotExact for a decimal that is nearest to two doubles' middle, and
    ArrowInvalid for an integer that is no float: where it becomes a double next, Spark leaves the float out."""
    if not isinstance(value.type, Decimal):
        return Value(pc.cast(value.data, pa.float32(), safe=value.type in INTEGERS), FLOAT)
    double = as_double(value)
    require_all(_are_clear(double))
    return Value(pc.cast(double.data, pa.float32(), safe=False), FLOAT)


def _are_clear(double: Value) -> pa.ChunkedArray | pa.Scalar:
    """Whether rounding a number to a double has not put it in the middle between two floats, which loses on which side
    it was; not of numbers too small for a float of all its digits."""
    numbers = repeated(double, 1)
    values = pc.fill_null(numbers, 0.0).to_numpy()
    is_middle = (values.view(np.int64) & _BELOW_FLOAT) == _MIDDLE
    is_small = (values != 0) & (np.abs(values) < _LEAST_FLOAT)
    return pa.chunked_array([pa.array(~(is_middle | is_small))])


def shortest(value: Value) -> Value:
    """A constant integer as the decimal that has just its digits."""
    number = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if number is None:
        raise NotExact
    type = fitting(max(1, len(str(abs(number)))), 0)
    return Value(pa.scalar(decimal.Decimal(number), arrow_type(type)), type)


def rescaled(value: Value, type: Decimal) -> pa.ChunkedArray | pa.Scalar:
    """An integer or a decimal in another type; raises ArrowInvalid where one does not fit or would lose digits."""
    data = value.data
    if value.type in INTEGERS:
        data = pc.cast(pc.cast(data, pa.int64()), pa.decimal128(19, 0))
    return cast_decimals(data, arrow_type(type))


def as_decimal(type: Type) -> Decimal:
    """The decimal that a number is beside a decimal. Raises NotExact for other types."""
    found = type if isinstance(type, Decimal) else _AS_DECIMALS.get(type)
    if found is None:
        raise NotExact
    return found


def whole_digits(one: Decimal, other: Decimal) -> int:
    """Before the point, of the wider one."""
    return max(one.precision - one.scale, other.precision - other.scale)


def fitting(precision: int, scale: int) -> Decimal:
    """The type, if it needs to give up no digits after the point."""
    if precision > MOST_DIGITS:
        raise NotExact
    return Decimal(precision, scale)


def adjusted(precision: int, scale: int) -> Decimal:
    """Of a result with too many digits Spark gives up those after the point, but for six."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, 6)))
