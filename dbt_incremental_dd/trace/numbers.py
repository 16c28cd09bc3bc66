"""Types of numbers as Spark derives them, and arithmetic on the driver that is exact or Spark's to do.

Rules of decimals: Spark's `DecimalPrecision`, which are those of Hive and SQL Server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import reduce as fold
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.value import ForSpark, Value

INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_MAX = 38
_QUOTIENT_SCALE = 39
"""Digits after the point that Spark's division of decimals keeps before it rounds to its type."""
_DIVIDED_ROWS = 10_000
"""Divisions are done one by one."""
_EXACT = Context(prec=100)


def is_comparable(type: str) -> bool:
    """Whether values of the type are compared alike in Arrow and in Spark."""
    return type in INTEGERS or type.startswith("decimal(") or type in ("string", "date", "boolean")


def comparable(one: Value, other: Value) -> tuple[Value, Value]:
    """Both in one type, in which comparing them is exact. Raises ForSpark where there is none."""
    type = common_type([one.type, other.type])
    if type == "void" or not is_comparable(type):
        raise ForSpark
    return widened(one, type), widened(other, type)


def common_type(types: Sequence[str]) -> str:
    """The type that holds all values of these: of a CASE, of COALESCE. Raises ForSpark where that is not exact."""
    found = [type for type in dict.fromkeys(types) if type != "void"]
    return fold(_wider, found) if found else "void"


def _wider(one: str, other: str) -> str:
    if one == other:
        return one
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.index)
    (p, s), (q, t) = digits_of(one), digits_of(other)
    return _named(max(p - s, q - t) + max(s, t), max(s, t))


def widened(value: Value, type: str) -> Value:
    """The same value in a type that holds it."""
    if value.type == type:
        return value
    if value.type == "void":
        return Value(pa.scalar(None, arrow_type(type)), type)
    return Value(_as_decimal(value, type) if type.startswith("decimal") else _cast(value, type), type)


def shortest(value: Value) -> Value:
    """A constant integer as the decimal that has just its digits."""
    number = value.data.as_py() if isinstance(value.data, pa.Scalar) else None
    if number is None:
        raise ForSpark
    type = _named(max(1, len(str(abs(number)))), 0)
    return Value(pa.scalar(Decimal(number), arrow_type(type)), type)


def cast(value: Value, sql_type: str) -> Value:
    """``CAST(value AS sql_type)`` where all values fit; a decimal loses digits by rounding half up."""
    type = type_of(sql_type)
    if value.type in (type, "void"):
        return widened(value, type)
    if type in INTEGERS and value.type in INTEGERS:
        return Value(_cast(value, type), type)
    if type == "double" and value.type in INTEGERS:
        return Value(pc.cast(value.data, pa.float64()), type)
    if not type.startswith("decimal("):
        raise ForSpark
    if digits_of(type)[1] < digits_of(value.type)[1]:
        if _largest(value) == 0:
            return Value(pc.cast(value.data, arrow_type(type)), type)
        return _by_one(lambda number: _half_up(number * 10 ** digits_of(type)[1]), type, value)
    return Value(_as_decimal(value, type), type)


def type_of(sql_type: str) -> str:
    """A type's name in a schema, by its name in SQL: ``long`` for ``BIGINT``."""
    name = sql_type.lower().replace(" ", "")
    return _NAMES.get(name, "decimal(10,0)" if name == "decimal" else name)


def add(one: Value, other: Value) -> Value:
    """``one + other``; so are the others named."""
    return _sum(pc.add_checked, one, other)


def subtract(one: Value, other: Value) -> Value:
    return _sum(pc.subtract_checked, one, other)


def multiply(one: Value, other: Value) -> Value:
    if one.type in INTEGERS and other.type in INTEGERS:
        return _integers(pc.multiply_checked, one, other)
    (p, s), (q, t) = digits_of(one.type), digits_of(other.type)
    precision, scale = _adjusted(p + q + 1, s + t)
    type = f"decimal({precision},{scale})"
    if scale == s + t:
        factors = _shortened(one), _shortened(other)
        return Value(pc.cast(pc.multiply(*factors), arrow_type(type)), type)
    nothing, factor = (one, other) if _largest(one) == 0 else (other, one)
    if _largest(nothing) == 0 and not isinstance(nothing.data, pa.Scalar):
        zeros = pc.if_else(pc.is_null(factor.data), None, _shortened(nothing))
        return Value(pc.cast(zeros, arrow_type(type)), type)
    return _by_one(lambda a, b: _half_up(_to_digits(a * b) * 10**scale), type, one, other)


def divide(one: Value, other: Value) -> Value:
    """Of decimals; the quotient has been rounded to 39 digits after the point before it is to its own scale."""
    if one.type == other.type == "double":
        if pc.any(pc.equal(other.data, 0.0)).as_py():
            raise ForSpark
        return Value(pc.divide(one.data, other.data), "double")
    if one.type in INTEGERS and other.type in INTEGERS:
        raise ForSpark
    (p, s), (q, t) = digits_of(one.type), digits_of(other.type)
    digits = max(6, s + q + 1)
    precision, scale = _adjusted(p - s + t + digits, digits)
    return _by_one(lambda a, b: _quotient(a, b, scale), f"decimal({precision},{scale})", one, other)


def remainder(one: Value, other: Value) -> Value:
    """Of decimals by a constant that is greater than all of them."""
    (p, s), (q, t) = digits_of(one.type), digits_of(other.type)
    constant = other.data.as_py() if isinstance(other.data, pa.Scalar) else None
    if constant is None or _largest(one) >= abs(constant) or one.type in INTEGERS:
        raise ForSpark
    type = _named(min(p - s, q - t) + max(s, t), max(s, t))
    return Value(_as_decimal(one, type), type)


def negate(value: Value) -> Value:
    return Value(pc.negate_checked(value.data), _number(value.type))


def absolute(value: Value) -> Value:
    return Value(pc.abs_checked(value.data), _number(value.type))


def _sum(operate: Callable[[Any, Any], Any], one: Value, other: Value) -> Value:
    if one.type in INTEGERS and other.type in INTEGERS:
        return _integers(operate, one, other)
    (p, s), (q, t) = digits_of(one.type), digits_of(other.type)
    precision, scale = _adjusted(max(p - s, q - t) + max(s, t) + 1, max(s, t))
    if scale < max(s, t):
        raise ForSpark
    found = operate(_shortened(one), _shortened(other))
    return Value(pc.cast(found, arrow_type(f"decimal({precision},{scale})")), f"decimal({precision},{scale})")


def _integers(operate: Callable[[Any, Any], Any], one: Value, other: Value) -> Value:
    type = _wider(one.type, other.type)
    return Value(operate(_cast(one, type), _cast(other, type)), type)


def _cast(value: Value, type: str) -> pa.ChunkedArray | pa.Scalar:
    return pc.cast(value.data, arrow_type(type))


def _as_decimal(value: Value, type: str) -> pa.ChunkedArray | pa.Scalar:
    """An integer or a decimal of a smaller scale; raises ArrowInvalid where one does not fit."""
    data = value.data
    if value.type in INTEGERS:
        data = pc.cast(pc.cast(data, pa.int64()), pa.decimal128(19, 0))
    return pc.cast(data, arrow_type(type))


def _number(type: str) -> str:
    if type not in INTEGERS and not type.startswith("decimal("):
        raise ForSpark
    return type


def digits_of(type: str) -> tuple[int, int]:
    """Precision and scale of the decimal that a number is beside a decimal. Raises ForSpark for other types."""
    if type in INTEGERS:
        return _DIGITS[type], 0
    if not type.startswith("decimal("):
        raise ForSpark
    precision, scale = type[8:-1].split(",")
    return int(precision), int(scale)


def _named(precision: int, scale: int) -> str:
    if precision > _MAX:  # Spark gives up digits after the point
        raise ForSpark
    return f"decimal({precision},{scale})"


def _adjusted(precision: int, scale: int) -> tuple[int, int]:
    """Of a result with too many digits Spark gives up those after the point, but for six."""
    if precision <= _MAX:
        return precision, scale
    return _MAX, max(_MAX - (precision - scale), min(scale, 6))


def _largest(value: Value) -> Decimal:
    """Of the absolute values."""
    bounds = pc.min_max(value.data).as_py() if not isinstance(value.data, pa.Scalar) else None
    ends = [value.data.as_py()] if bounds is None else [bounds["min"], bounds["max"]]
    return max(abs(Decimal(end or 0)) for end in ends)


def _shortened(value: Value) -> pa.ChunkedArray | pa.Scalar:
    """Decimals of no more digits than they need, so that their product has room."""
    _, scale = digits_of(value.type)
    digits = len(str(int(_EXACT.scaleb(_largest(value), scale))))
    return _as_decimal(value, f"decimal({max(digits, scale, 1)},{scale})")


def _to_digits(number: Fraction) -> Fraction:
    """As Spark multiplies: rounded to as many digits as its arithmetic has, before its type's."""
    if not number:
        return number
    exact = Context(prec=100).divide(Decimal(number.numerator), Decimal(number.denominator))
    return Fraction(Context(prec=_MAX + 1, rounding=ROUND_HALF_UP).plus(exact))


def _by_one(operate: Callable[..., int], type: str, *values: Value) -> Value:
    """Decimals computed one by one: ``operate`` gives the number of units of the type's last digit."""
    precision, scale = digits_of(type)
    rows = max(len(value.data) for value in values if not isinstance(value.data, pa.Scalar))
    if rows > _DIVIDED_ROWS:
        raise ForSpark
    columns = [
        [value.data.as_py()] * rows if isinstance(value.data, pa.Scalar) else value.data.to_pylist() for value in values
    ]
    found = []
    for row in zip(*columns, strict=True):
        units = None if None in row else operate(*map(Fraction, row))
        if units is not None and abs(units) >= 10**precision:
            raise ForSpark
        found.append(None if units is None else _EXACT.scaleb(Decimal(units), -scale))
    return Value(pa.chunked_array([pa.array(found, arrow_type(type))]), type)


def _quotient(one: Fraction, other: Fraction, scale: int) -> int:
    """As Spark divides: rounded to the digits that its division keeps, and then to the type's."""
    if not other:
        raise ForSpark
    return _half_up(Fraction(_half_up(one / other * 10**_QUOTIENT_SCALE), 10 ** (_QUOTIENT_SCALE - scale)))


def _half_up(number: Fraction) -> int:
    units = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return units if number >= 0 else -units
