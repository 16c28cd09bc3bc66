"""Types of numbers as Spark derives them, and arithmetic on the driver that is exact or Spark's to do.

Rules of decimals: Spark's `DecimalPrecision`, which are those of Hive and SQL Server.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce as fold
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
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
from dbt_incremental_dd.logical import sql_types
from dbt_incremental_dd.trace.arrow import arrow_type

_AS_DECIMALS = {BYTE: Decimal(3, 0), SHORT: Decimal(5, 0), INTEGER: Decimal(10, 0), LONG: Decimal(20, 0)}
_COMPARED = (STRING, DATE, BOOLEAN, TIMESTAMP, TIMESTAMP_NTZ)
_MAX = 38
_QUOTIENT_SCALE = 39
"""Digits after the point that Spark's division of decimals keeps before it rounds to its type."""
_DIVIDED_ROWS = 10_000
"""Divisions are done one by one."""
_EXACT = decimal.Context(prec=100)


def is_comparable(type: Type) -> bool:
    """Whether values of the type are compared alike in Arrow and in Spark."""
    return isinstance(type, Decimal) or type in INTEGERS or type in _COMPARED


def comparable(one: Value, other: Value) -> tuple[Value, Value]:
    """Both in one type, in which comparing them is exact. Raises NotExact where there is none."""
    type = common_type([one.type, other.type])
    if type == VOID or not is_comparable(type):
        raise NotExact
    return widened(one, type), widened(other, type)


def common_type(types: Sequence[Type]) -> Type:
    """The type that holds all values of these: of a CASE, of COALESCE. Raises NotExact where that is not exact."""
    found = [type for type in dict.fromkeys(types) if type != VOID]
    return fold(_wider, found) if found else VOID


def _wider(one: Type, other: Type) -> Type:
    if one == other:
        return one
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.index)
    a, b = as_decimal(one), as_decimal(other)
    scale = max(a.scale, b.scale)
    return _fitting(_whole_digits(a, b) + scale, scale)


def widened(value: Value, type: Type) -> Value:
    """The same value in a type that holds it."""
    if value.type == type:
        return value
    if value.type == VOID:
        return Value(pa.scalar(None, arrow_type(type)), type)
    return Value(_rescaled(value, type) if isinstance(type, Decimal) else _cast(value, type), type)


def shortest(value: Value) -> Value:
    """A constant integer as the decimal that has just its digits."""
    number = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if number is None:
        raise NotExact
    type = _fitting(max(1, len(str(abs(number)))), 0)
    return Value(pa.scalar(decimal.Decimal(number), arrow_type(type)), type)


def cast(value: Value, sql_type: str) -> Value:
    """``CAST(value AS sql_type)`` where all values fit; a decimal loses digits by rounding half up."""
    type = _type_of(sql_type)
    if value.type in (type, VOID):
        return widened(value, type)
    if type in INTEGERS and value.type in INTEGERS:
        return Value(_cast(value, type), type)
    if type == DOUBLE and value.type in INTEGERS:
        return Value(pc.cast(value.data, pa.float64()), type)
    if not isinstance(type, Decimal):
        raise NotExact
    if type.scale < as_decimal(value.type).scale:
        if _largest(value) == 0:
            return Value(pc.cast(value.data, arrow_type(type)), type)
        unit = 10**type.scale
        return _by_one(lambda number: _half_up(number * unit), type, value)
    return Value(_rescaled(value, type), type)


def _type_of(sql_type: str) -> Type:
    try:
        return sql_types.type_of(sql_type)
    except ValueError as error:
        raise NotExact from error


def add(one: Value, other: Value) -> Value:
    """``one + other``; so are the others named."""
    return _sum(pc.add_checked, one, other)


def subtract(one: Value, other: Value) -> Value:
    return _sum(pc.subtract_checked, one, other)


def multiply(one: Value, other: Value) -> Value:
    if one.type in INTEGERS and other.type in INTEGERS:
        return _integers(pc.multiply_checked, one, other)
    a, b = as_decimal(one.type), as_decimal(other.type)
    exact = a.scale + b.scale
    type = _adjusted(a.precision + b.precision + 1, exact)
    if type.scale == exact:
        factors = _shortened(one), _shortened(other)
        return Value(pc.cast(pc.multiply(*factors), arrow_type(type)), type)
    nothing, factor = (one, other) if _largest(one) == 0 else (other, one)
    if _largest(nothing) == 0 and not isinstance(nothing.data, pa.Scalar):
        zeros = pc.if_else(pc.is_null(factor.data), None, _shortened(nothing))
        return Value(pc.cast(zeros, arrow_type(type)), type)
    unit = 10**type.scale
    return _by_one(lambda a, b: _half_up(_to_digits(a * b) * unit), type, one, other)


def divide(one: Value, other: Value) -> Value:
    """Of decimals; the quotient has been rounded to 39 digits after the point before it is to its own scale."""
    if one.type == other.type == DOUBLE:
        if pc.any(pc.equal(other.data, 0.0)).as_py():
            raise NotExact
        return Value(pc.divide(one.data, other.data), DOUBLE)
    if one.type in INTEGERS and other.type in INTEGERS:
        raise NotExact
    a, b = as_decimal(one.type), as_decimal(other.type)
    digits = max(6, a.scale + b.precision + 1)
    type = _adjusted(a.precision - a.scale + b.scale + digits, digits)
    return _by_one(lambda a, b: _quotient(a, b, type.scale), type, one, other)


def remainder(one: Value, other: Value) -> Value:
    """Of decimals by a constant that is greater than all of them."""
    a, b = as_decimal(one.type), as_decimal(other.type)
    constant = other.data.as_py() if isinstance(other.data, pa.Scalar) else None
    if constant is None or _largest(one) >= abs(constant) or one.type in INTEGERS:
        raise NotExact
    scale = max(a.scale, b.scale)
    type = _fitting(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return Value(_rescaled(one, type), type)


def negate(value: Value) -> Value:
    return Value(pc.negate_checked(value.data), _number(value.type))


def absolute(value: Value) -> Value:
    return Value(pc.abs_checked(value.data), _number(value.type))


def _sum(operate: Callable[[Any, Any], Any], one: Value, other: Value) -> Value:
    if one.type in INTEGERS and other.type in INTEGERS:
        return _integers(operate, one, other)
    a, b = as_decimal(one.type), as_decimal(other.type)
    scale = max(a.scale, b.scale)
    type = _adjusted(_whole_digits(a, b) + scale + 1, scale)
    if type.scale < scale:
        raise NotExact
    found = operate(_shortened(one), _shortened(other))
    return Value(pc.cast(found, arrow_type(type)), type)


def _integers(operate: Callable[[Any, Any], Any], one: Value, other: Value) -> Value:
    type = _wider(one.type, other.type)
    return Value(operate(_cast(one, type), _cast(other, type)), type)


def _cast(value: Value, type: Type) -> pa.ChunkedArray | pa.Scalar:
    return pc.cast(value.data, arrow_type(type))


def _rescaled(value: Value, type: Decimal) -> pa.ChunkedArray | pa.Scalar:
    """An integer or a decimal of a smaller scale; raises ArrowInvalid where one does not fit."""
    data = value.data
    if value.type in INTEGERS:
        data = pc.cast(pc.cast(data, pa.int64()), pa.decimal128(19, 0))
    return pc.cast(data, arrow_type(type))


def _number(type: Type) -> Type:
    if type not in INTEGERS and not isinstance(type, Decimal):
        raise NotExact
    return type


def as_decimal(type: Type) -> Decimal:
    """The decimal that a number is beside a decimal. Raises NotExact for other types."""
    found = type if isinstance(type, Decimal) else _AS_DECIMALS.get(type)
    if found is None:
        raise NotExact
    return found


def _whole_digits(one: Decimal, other: Decimal) -> int:
    """Before the point, of the wider one."""
    return max(one.precision - one.scale, other.precision - other.scale)


def _fitting(precision: int, scale: int) -> Decimal:
    if precision > _MAX:  # Spark gives up digits after the point
        raise NotExact
    return Decimal(precision, scale)


def _adjusted(precision: int, scale: int) -> Decimal:
    """Of a result with too many digits Spark gives up those after the point, but for six."""
    if precision <= _MAX:
        return Decimal(precision, scale)
    return Decimal(_MAX, max(_MAX - (precision - scale), min(scale, 6)))


def _largest(value: Value) -> decimal.Decimal:
    """Of the absolute values."""
    bounds = pc.min_max(value.data).as_py() if not isinstance(value.data, pa.Scalar) else None
    ends = [value.data.as_py()] if bounds is None else [bounds["min"], bounds["max"]]
    return max(abs(decimal.Decimal(end or 0)) for end in ends)


def _shortened(value: Value) -> pa.ChunkedArray | pa.Scalar:
    """Decimals of no more digits than they need, so that their product has room."""
    scale = as_decimal(value.type).scale
    digits = len(str(int(_EXACT.scaleb(_largest(value), scale))))
    return _rescaled(value, Decimal(max(digits, scale, 1), scale))


def _to_digits(number: Fraction) -> Fraction:
    """As Spark multiplies: rounded to as many digits as its arithmetic has, before its type's."""
    if not number:
        return number
    exact = _EXACT.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
    return Fraction(decimal.Context(prec=_MAX + 1, rounding=decimal.ROUND_HALF_UP).plus(exact))


def _by_one(operate: Callable[..., int], type: Decimal, *values: Value) -> Value:
    """Decimals computed one by one: ``operate`` gives the number of units of the type's last digit."""
    rows = max(len(value.data) for value in values if not isinstance(value.data, pa.Scalar))
    if rows > _DIVIDED_ROWS:
        raise NotExact
    columns = [
        [value.data.as_py()] * rows if isinstance(value.data, pa.Scalar) else value.data.to_pylist() for value in values
    ]
    found = []
    for row in zip(*columns, strict=True):
        units = None if None in row else operate(*map(Fraction, row))
        if units is not None and abs(units) >= 10**type.precision:
            raise NotExact
        found.append(None if units is None else _EXACT.scaleb(decimal.Decimal(units), -type.scale))
    return Value(pa.chunked_array([pa.array(found, arrow_type(type))]), type)


def _quotient(one: Fraction, other: Fraction, scale: int) -> int:
    """As Spark divides: rounded to the digits that its division keeps, and then to the type's."""
    if not other:
        raise NotExact
    return _half_up(Fraction(_half_up(one / other * 10**_QUOTIENT_SCALE), 10 ** (_QUOTIENT_SCALE - scale)))


def _half_up(number: Fraction) -> int:
    units = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return units if number >= 0 else -units
