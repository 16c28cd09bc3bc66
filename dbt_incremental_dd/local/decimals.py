"""Arithmetic of decimals that is exact or Spark's to do; types as Spark's `DecimalPrecision` derives them."""

from __future__ import annotations

import contextlib
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
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
from dbt_incremental_dd.local.long_division import quotients
from dbt_incremental_dd.local.units import by_units, half_up, words
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import column, rows_of
from dbt_incremental_dd.trace.arrow import arrow_type

_QUOTIENT_SCALE = 39
"""Digits after the point that Spark's division of decimals keeps before it rounds to its type."""
EXACT = decimal.Context(prec=100)
"""For arithmetic of Python's decimals, which otherwise rounds to 28 digits."""
_MANY = 500
"""Rows that NumPy divides sooner than Python."""
_NEGATED_DIGITS = 34
"""To which Spark rounds a decimal that it negates: those of Scala's BigDecimal."""


def cast(value: Value, type: Decimal) -> Value:
    """An integer or a decimal in another decimal type; it loses digits by rounding half up."""
    source = as_decimal(value.type)
    if type.scale >= source.scale:
        return Value(rescaled(value, type), type)
    # Rounding up may take a digit more.
    if source.precision < MOST_DIGITS or largest(value) < 10 ** (MOST_DIGITS - 1 - source.scale):
        return round_to(value, type.scale, "half_towards_infinity", type)
    unit = 10 ** (source.scale - type.scale)
    return by_units(lambda x: half_up(x, unit), type, value)


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
        return _operated(pc.multiply, one, other, a.precision + b.precision + 1, type)
    nothing, factor = (one, other) if largest(one) == 0 else (other, one)
    if largest(nothing) == 0 and not isinstance(nothing.data, pa.Scalar):
        zeros = pc.if_else(pc.is_null(factor.data), None, _shortened(nothing))
        return Value(pc.cast(zeros, arrow_type(type)), type)
    unit = 10 ** (exact - type.scale)
    return by_units(lambda x, y: half_up(_to_digits(x * y), unit), type, one, other)


def divide(one: Value, other: Value) -> Value:
    """The quotient has been rounded to 39 digits after the point before it is to its own scale; none by zero."""
    a, b = as_decimal(one.type), as_decimal(other.type)
    digits = max(6, a.scale + b.precision + 1)
    type = adjusted(a.precision - a.scale + b.scale + digits, digits)
    rows = rows_of(one, other)
    if rows >= _MANY:
        with contextlib.suppress(NotExact):
            return _divided_at_once(one, other, rows, type)
    unit, last = 10 ** (_QUOTIENT_SCALE + b.scale - a.scale), 10 ** (_QUOTIENT_SCALE - type.scale)

    def quotient(x: int, y: int) -> int | None:
        return half_up(half_up(x * unit if y > 0 else -x * unit, abs(y)), last) if y else None

    return by_units(quotient, type, one, other)


def _divided_at_once(one: Value, other: Value, rows: int, type: Decimal) -> Value:
    """The same for many rows. One rounding does here: a quotient between two ties is at least 1 / 2y of its last digit
    away from both, and Spark's first rounding moves it less, if y is not very large. Raises NotExact where it is, and
    for numbers that do not fit into 64 bits."""
    (x, has_x), (y, has_y) = words(one, rows), words(other, rows)
    digits = type.scale + as_decimal(other.type).scale - as_decimal(one.type).scale
    if digits < 0 or int(np.abs(y).max()) * 10**type.scale >= 10**_QUOTIENT_SCALE:
        raise NotExact
    return column(quotients(x, np.where(has_x & has_y, y, 0), digits, type), type)


def remainder(one: Value, other: Value) -> Value:
    """It has the sign of the dividend, and there is none by zero."""
    a, b = as_decimal(one.type), as_decimal(other.type)
    scale = max(a.scale, b.scale)
    type = fitting(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    constant = other.data.as_py() if isinstance(other.data, pa.Scalar) else None
    if constant is not None and largest(one) < decimal.Decimal(constant).copy_abs() and one.type not in INTEGERS:
        return Value(rescaled(one, type), type)
    x_unit, y_unit = 10 ** (scale - a.scale), 10 ** (scale - b.scale)

    def rest(x: int, y: int) -> int | None:
        found = abs(x * x_unit) % abs(y * y_unit) if y else None
        return found if found is None or x >= 0 else -found

    return by_units(rest, type, one, other)


def require_negatable(value: Value) -> None:
    """Raises NotExact where a decimal has more digits than Spark keeps when it negates one."""
    if not isinstance(value.type, Decimal) or value.type.precision <= _NEGATED_DIGITS:
        return
    if largest(value) >= decimal.Decimal((0, (1,), _NEGATED_DIGITS - value.type.scale)):
        raise NotExact("a decimal with too many digits to negate it")


def whole_quotient(one: Value, other: Value) -> Value:
    """``one DIV other``, towards zero; none by zero."""
    a, b = as_decimal(one.type), as_decimal(other.type)
    x_unit, y_unit = 10 ** max(b.scale - a.scale, 0), 10 ** max(a.scale - b.scale, 0)

    def quotient(x: int, y: int) -> int | None:
        found = abs(x * x_unit) // abs(y * y_unit) if y else None
        return found if found is None or (x < 0) == (y < 0) else -found

    found = by_units(quotient, Decimal(MOST_DIGITS, 0), one, other)
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
    return _operated(operate, one, other, whole_digits(a, b) + scale + 1, type)


def _operated(operate: Callable[[Any, Any], Any], one: Value, other: Value, digits: int, type: Decimal) -> Value:
    """By Arrow, whose result has so many digits."""
    fit = _as_it_is if digits <= MOST_DIGITS else _shortened
    found = operate(fit(one), fit(other))
    return Value(found if found.type == arrow_type(type) else pc.cast(found, arrow_type(type)), type)


def _as_it_is(value: Value) -> pa.ChunkedArray | pa.Scalar:
    return value.data if isinstance(value.type, Decimal) else rescaled(value, as_decimal(value.type))


def largest(value: Value) -> decimal.Decimal:
    """The greatest absolute value of whole numbers or decimals; 0 where there is none. Python's ``abs`` would round it
    to 28 digits."""
    bounds = pc.min_max(value.data).as_py() if not isinstance(value.data, pa.Scalar) else None
    ends = [value.data.as_py()] if bounds is None else [bounds["min"], bounds["max"]]
    return max(decimal.Decimal(end or 0).copy_abs() for end in ends)


def _shortened(value: Value) -> pa.ChunkedArray | pa.Scalar:
    """Decimals of no more digits than they need, so that their product has room."""
    scale = as_decimal(value.type).scale
    digits = len(str(int(EXACT.scaleb(largest(value), scale))))
    return rescaled(value, Decimal(max(digits, scale, 1), scale))


def _to_digits(units: int) -> int:
    """As Spark multiplies: rounded to as many digits as its arithmetic has, before its type's."""
    surplus: int = 10 ** max(len(str(abs(units))) - MOST_DIGITS - 1, 0)
    return half_up(units, surplus) * surplus
