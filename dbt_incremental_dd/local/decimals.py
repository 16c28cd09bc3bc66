"""Arithmetic of decimals that is exact or Spark's to do; types as Spark's `DecimalPrecision` derives them."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import INTEGERS, LONG, Decimal
from dbt_incremental_dd.local.coercion import (
    MOST_DIGITS,
    adjusted,
    as_decimal,
    fitting,
    rescaled,
    whole_digits,
)
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import rows_of
from dbt_incremental_dd.trace.arrow import arrow_type

_QUOTIENT_SCALE = 39
"""Digits after the point that Spark's division of decimals keeps before it rounds to its type."""
_DIVIDED_ROWS = 10_000
"""Divisions are done one by one."""
_EXACT = decimal.Context(prec=100)


def cast(value: Value, type: Decimal) -> Value:
    """An integer or a decimal in another decimal type; it loses digits by rounding half up."""
    if type.scale < as_decimal(value.type).scale:
        if _largest(value) == 0:
            return Value(pc.cast(value.data, arrow_type(type)), type)
        unit = 10**type.scale
        return _by_one(lambda number: _half_up(number * unit), type, value)
    return Value(rescaled(value, type), type)


def add(one: Value, other: Value) -> Value:
    """``one + other``; so are the others named."""
    return _sum(pc.add_checked, one, other)


def subtract(one: Value, other: Value) -> Value:
    return _sum(pc.subtract_checked, one, other)


def multiply(one: Value, other: Value) -> Value:
    a, b = as_decimal(one.type), as_decimal(other.type)
    exact = a.scale + b.scale
    type = adjusted(a.precision + b.precision + 1, exact)
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
    """The quotient has been rounded to 39 digits after the point before it is to its own scale; none by zero."""
    a, b = as_decimal(one.type), as_decimal(other.type)
    digits = max(6, a.scale + b.precision + 1)
    type = adjusted(a.precision - a.scale + b.scale + digits, digits)
    return _by_one(lambda a, b: _quotient(a, b, type.scale), type, one, other)


def remainder(one: Value, other: Value) -> Value:
    """It has the sign of the dividend, and there is none by zero."""
    a, b = as_decimal(one.type), as_decimal(other.type)
    scale = max(a.scale, b.scale)
    type = fitting(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    constant = other.data.as_py() if isinstance(other.data, pa.Scalar) else None
    if constant is not None and _largest(one) < abs(constant) and one.type not in INTEGERS:
        return Value(rescaled(one, type), type)
    return _by_one(lambda a, b: _units(_rest(a, b), type.scale), type, one, other)


def whole_quotient(one: Value, other: Value) -> Value:
    """``one DIV other``, towards zero; none by zero."""
    found = _by_one(lambda a, b: int(a / b) if b else None, Decimal(MOST_DIGITS, 0), one, other)
    return Value(pc.cast(found.data, pa.int64()), LONG)


def round_to(value: Value, places: int, mode: str, type: Decimal) -> Value:
    """To so many places after the point, by Arrow's rule of that name, as a decimal of another type."""
    roomy = rescaled(value, Decimal(MOST_DIGITS, as_decimal(value.type).scale))
    return Value(pc.cast(pc.round(roomy, places, mode), arrow_type(type)), type)


def _sum(operate: Callable[[Any, Any], Any], one: Value, other: Value) -> Value:
    a, b = as_decimal(one.type), as_decimal(other.type)
    scale = max(a.scale, b.scale)
    type = adjusted(whole_digits(a, b) + scale + 1, scale)
    if type.scale < scale:
        raise NotExact
    found = operate(_shortened(one), _shortened(other))
    return Value(pc.cast(found, arrow_type(type)), type)


def _largest(value: Value) -> decimal.Decimal:
    """Of the absolute values."""
    bounds = pc.min_max(value.data).as_py() if not isinstance(value.data, pa.Scalar) else None
    ends = [value.data.as_py()] if bounds is None else [bounds["min"], bounds["max"]]
    return max(abs(decimal.Decimal(end or 0)) for end in ends)


def _shortened(value: Value) -> pa.ChunkedArray | pa.Scalar:
    """Decimals of no more digits than they need, so that their product has room."""
    scale = as_decimal(value.type).scale
    digits = len(str(int(_EXACT.scaleb(_largest(value), scale))))
    return rescaled(value, Decimal(max(digits, scale, 1), scale))


def _to_digits(number: Fraction) -> Fraction:
    """As Spark multiplies: rounded to as many digits as its arithmetic has, before its type's."""
    if not number:
        return number
    exact = _EXACT.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
    return Fraction(decimal.Context(prec=MOST_DIGITS + 1, rounding=decimal.ROUND_HALF_UP).plus(exact))


def _by_one(operate: Callable[..., int | None], type: Decimal, *values: Value) -> Value:
    """Decimals computed one by one: ``operate`` gives the number of units of the type's last digit, or NULL."""
    rows = rows_of(*values)
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


def _quotient(one: Fraction, other: Fraction, scale: int) -> int | None:
    """As Spark divides: rounded to the digits that its division keeps, and then to the type's."""
    if not other:
        return None
    return _half_up(Fraction(_half_up(one / other * 10**_QUOTIENT_SCALE), 10 ** (_QUOTIENT_SCALE - scale)))


def _rest(one: Fraction, other: Fraction) -> Fraction | None:
    return one - other * int(one / other) if other else None


def _units(number: Fraction | None, scale: int) -> int | None:
    return None if number is None else int(number * 10**scale)


def _half_up(number: Fraction) -> int:
    units = (2 * abs(number.numerator) + number.denominator) // (2 * number.denominator)
    return units if number >= 0 else -units
