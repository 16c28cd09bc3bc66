"""Operators of numbers, dates and moments. Integers wrap and there is no quotient by zero: ANSI mode is off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BYTE, DATE, DOUBLE, FLOATS, INTEGER, INTEGERS, LONG, SHORT, Decimal, Type
from dbt_incremental_dd.local import decimals
from dbt_incremental_dd.local.coercion import as_double, is_number, widened, wider
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import column, integers, require_all
from dbt_incremental_dd.local.zones import within
from dbt_incremental_dd.trace.arrow import arrow_type

_LEAST = -(2**63)


def add(one: Value, other: Value) -> Value:
    """``one + other``; so are the others named."""
    if other.type == DATE:
        one, other = other, one
    return later(one, other, 1) if one.type == DATE else _operated(pc.add, decimals.add, one, other)


def subtract(one: Value, other: Value) -> Value:
    return later(one, other, -1) if one.type == DATE else _operated(pc.subtract, decimals.subtract, one, other)


def multiply(one: Value, other: Value) -> Value:
    return _operated(pc.multiply, decimals.multiply, one, other)


def divide(one: Value, other: Value) -> Value:
    """Of other numbers than decimals as doubles."""
    if isinstance(_numbers(one, other), Decimal):
        return decimals.divide(one, other)
    a, b = as_double(one).data, _unless_zero(as_double(other))
    return Value(pc.divide(a, b), DOUBLE)


def whole_quotient(one: Value, other: Value) -> Value:
    """``one DIV other``"""
    type = _numbers(one, other)
    if isinstance(type, Decimal):
        return decimals.whole_quotient(one, other)
    if type in FLOATS:
        raise NotExact
    a, b = widened(one, LONG).data, _unless_zero(widened(other, LONG))
    require_all(pc.invert(pc.and_(pc.equal(a, _LEAST), pc.equal(b, -1))))
    return Value(pc.divide(a, b), LONG)


def remainder(one: Value, other: Value) -> Value:
    """``one % other``, with the sign of ``one``."""
    type = _numbers(one, other)
    if isinstance(type, Decimal):
        return decimals.remainder(one, other)
    if type in FLOATS:
        raise NotExact
    a, b = widened(one, type), widened(other, type)
    return Value(_rest(a.data, _unless_zero(b)), type)


def positive_remainder(one: Value, other: Value) -> Value:
    """``pmod(one, other)`` of integers by positive ones."""
    type = _numbers(one, other)
    if type not in INTEGERS:
        raise NotExact
    a, b = widened(one, type).data, _unless_zero(widened(other, type))
    require_all(pc.greater(b, 0))
    rest = _rest(a, b)
    return Value(pc.if_else(pc.less(rest, 0), pc.add(rest, b), rest), type)


def negate(value: Value) -> Value:
    decimals.require_negatable(value)
    return Value(pc.negate(value.data), _number(value.type))


def absolute(value: Value) -> Value:
    decimals.require_negatable(value)
    return Value(pc.abs(value.data), _number(value.type))


def later(date: Value, days: Value, sign: int) -> Value:
    """The date so many days later, or before."""
    if date.type != DATE or days.type not in (BYTE, SHORT, INTEGER):
        raise NotExact
    operate = pc.add if sign > 0 else pc.subtract
    found = operate(pc.cast(pc.cast(date.data, pa.int32()), pa.int64()), pc.cast(days.data, pa.int64()))
    return within(Value(pc.cast(pc.cast(found, pa.int32()), pa.date32()), DATE))


def bitwise(operate: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    """An operation on the bits of two integers."""

    def operated(one: Value, other: Value) -> Value:
        type = _numbers(one, other)
        if type not in INTEGERS:
            raise NotExact
        return Value(operate(widened(one, type).data, widened(other, type).data), type)

    return operated


def invert_bits(value: Value) -> Value:
    if value.type not in INTEGERS:
        raise NotExact
    return Value(pc.bit_wise_not(value.data), value.type)


def shift(operate: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    """Of an integer of 32 or 64 bits, by the number of bits that is the last five or six bits of the other."""

    def shifted(one: Value, other: Value) -> Value:
        type = LONG if one.type == LONG else INTEGER
        if one.type not in INTEGERS or other.type not in (BYTE, SHORT, INTEGER):
            raise NotExact
        (number, null), (count, unknown) = integers(one), integers(other)
        bits = number if type == LONG else number.astype(np.int32)
        found = operate(bits, (count & (63 if type == LONG else 31)).astype(bits.dtype))
        return column(pa.array(found, arrow_type(type), mask=np.broadcast_to(null | unknown, found.shape)), type)

    return shifted


def _operated(
    operate: Callable[[Any, Any], Any], exactly: Callable[[Value, Value], Value], one: Value, other: Value
) -> Value:
    type = _numbers(one, other)
    if isinstance(type, Decimal):
        return exactly(one, other)
    return Value(operate(widened(one, type).data, widened(other, type).data), type)


def _numbers(one: Value, other: Value) -> Type:
    """The type in which two numbers are computed with; DECIMAL stands for all decimals."""
    if not is_number(one.type) or not is_number(other.type):
        raise NotExact
    types = (one.type, other.type)
    if any(isinstance(type, Decimal) for type in types) and not any(type in FLOATS for type in types):
        return Decimal(1, 0)
    return wider(*types)


def _unless_zero(value: Value) -> Any:
    zero = pc.equal(value.data, pa.scalar(0, value.data.type))
    return pc.if_else(zero, pa.scalar(None, value.data.type), value.data)


def _rest(a: Any, b: Any) -> Any:
    b = pc.if_else(pc.equal(b, -1), pa.scalar(1, b.type), b)  # the least number has no quotient by -1
    return pc.subtract(a, pc.multiply(pc.divide(a, b), b))


def _number(type: Type) -> Type:
    if not is_number(type):
        raise NotExact
    return type
