"""Functions of numbers, of the types that Spark gives them."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DOUBLE, FLOATS, INTEGERS, LONG, Decimal
from dbt_incremental_dd.local import arithmetic, decimals
from dbt_incremental_dd.local.coercion import MOST_DIGITS, as_double, is_number
from dbt_incremental_dd.local.decimals import EXACT
from dbt_incremental_dd.local.double_text import written
from dbt_incremental_dd.local.functions.function import Function, Functions, fixed
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import by_row, constant_int, require, require_all

_MOST_PLACES = 15
_MOST_POWER, _MOST_BASE = 53, 1 << 53


def _round(mode: str) -> Callable[..., Value]:
    """To a constant number of places after the point."""

    def rounded(value: Value, places: Value | None = None) -> Value:
        count = 0 if places is None else constant_int(places)
        if isinstance(value.type, Decimal):
            return _rounded_decimal(value, count, mode)
        if value.type in INTEGERS and count >= 0:
            return value
        if value.type == DOUBLE and 0 <= count <= _MOST_PLACES and mode == "half_towards_infinity":
            return by_row(lambda number: _rounded_double(number, count), DOUBLE, value)
        raise NotExact

    return rounded


def _rounded_decimal(value: Value, places: int, mode: str) -> Value:
    assert isinstance(value.type, Decimal)
    before = value.type.precision - value.type.scale + 1
    if places < 0:
        type = Decimal(min(max(before, -places + 1), MOST_DIGITS), 0)
    else:
        scale = min(places, value.type.scale)
        type = Decimal(min(before + scale, MOST_DIGITS), scale)
    return decimals.round_to(value, min(places, value.type.scale), mode, type)


def _rounded_double(number: float, places: int) -> float:
    """Half up of what is written of it."""
    if not math.isfinite(number):
        return number
    step = EXACT.scaleb(decimal.Decimal(1), -places)
    return float(written(number).quantize(step, decimal.ROUND_HALF_UP, EXACT)) + 0.0


def _to_integer(round_: Callable[[Any], Any], mode: str) -> Callable[[Value], Value]:
    """CEIL and FLOOR."""

    def rounded(value: Value) -> Value:
        if value.type in INTEGERS:
            return Value(pc.cast(value.data, pa.int64()), LONG)
        if isinstance(value.type, Decimal):
            type = Decimal(min(value.type.precision - value.type.scale + 1, MOST_DIGITS), 0)
            return decimals.round_to(value, 0, mode, type)
        require(value, DOUBLE)
        return Value(pc.cast(round_(value.data), pa.int64()), LONG)

    return rounded


def _sign(value: Value) -> Value:
    if not is_number(value.type):
        raise NotExact
    number = as_double(value).data
    require_all(pc.not_equal(number, -0.0) if value.type in FLOATS else pa.scalar(True))
    return Value(pc.cast(pc.sign(number), pa.float64()), DOUBLE)


def _sqrt(value: Value) -> Value:
    if not is_number(value.type):
        raise NotExact
    return Value(pc.sqrt(as_double(value).data), DOUBLE)


def _power(value: Value, exponent: Value) -> Value:
    """Squares, and integers to the power of integers where Java's result is exact (``Math.pow``)."""
    if not is_number(value.type) or not is_number(exponent.type):
        raise NotExact
    base, power = as_double(value), as_double(exponent)
    if isinstance(power.data, pa.Scalar) and power.data.as_py() == 2:
        return Value(pc.multiply(base.data, base.data), DOUBLE)
    return by_row(_exact_power, DOUBLE, base, power)


def _exact_power(base: float, power: float) -> float:
    if not (base.is_integer() and power.is_integer() and 0 <= power <= _MOST_POWER and abs(base) <= _MOST_BASE):
        raise ValueError(base)
    found = int(base) ** int(power)
    if abs(found) > 1 << 53 or (base == 0 and math.copysign(1, base) < 0):
        raise ValueError(found)
    return float(found)


FUNCTIONS: Functions = {
    "abs": fixed(arithmetic.absolute, 1),
    "bround": Function(_round("half_to_even"), 1, 2),
    "ceil": fixed(_to_integer(pc.ceil, "up"), 1),
    "ceiling": fixed(_to_integer(pc.ceil, "up"), 1),
    "floor": fixed(_to_integer(pc.floor, "down"), 1),
    "negative": fixed(arithmetic.negate, 1),
    "pow": fixed(_power, 2),
    "power": fixed(_power, 2),
    "pmod": fixed(arithmetic.positive_remainder, 2),
    "round": Function(_round("half_towards_infinity"), 1, 2),
    "shiftleft": fixed(arithmetic.shift(np.left_shift), 2),
    "shiftright": fixed(arithmetic.shift(np.right_shift), 2),
    "sign": fixed(_sign, 1),
    "signum": fixed(_sign, 1),
    "sqrt": fixed(_sqrt, 1),
    "try_divide": fixed(arithmetic.divide, 2),
}
