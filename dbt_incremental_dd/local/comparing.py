"""Comparisons as Spark has them: NaN equals itself and is the greatest double."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DATE, DOUBLE, INTEGERS, LONG, STRING, TIMESTAMP, Decimal, Type
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.coercion import common_type, compared
from dbt_incremental_dd.local.nested import has_order, numbers
from dbt_incremental_dd.local.value import NotExact, Value

Comparison = Callable[[Value, Value], Any]
"""Of values of one type."""


def comparable(one: Value, other: Value, zone: str) -> tuple[Value, Value]:
    """Both in the type in which Spark compares them; nested ones as numbers. Raises NotExact where Arrow might find
    otherwise."""
    types = {one.type, other.type}
    if one.type == other.type and has_order(one.type):
        if not is_column(one) or not is_column(other):
            raise NotExact
        found = numbers(one.data, other.data)
        return Value(pa.chunked_array([found[0]]), LONG), Value(pa.chunked_array([found[1]]), LONG)
    if types == {TIMESTAMP, DATE}:
        return _as(one, TIMESTAMP, zone), _as(other, TIMESTAMP, zone)
    if STRING in types:
        for kind in types & {TIMESTAMP, DATE, *INTEGERS}:
            return _as(one, kind, zone), _as(other, kind, zone)
    type = common_type([one.type, other.type])
    if isinstance(type, Decimal):  # of which too many digits are rounded
        return _as(one, type, zone), _as(other, type, zone)
    return compared(one, type), compared(other, type)


def _as(value: Value, type: Type, zone: str) -> Value:
    return value if value.type == type else cast(value, type, zone)


def equal(one: Value, other: Value) -> Any:
    """``one = other``; so are the others named."""
    found = pc.equal(one.data, other.data)
    return found if one.type != DOUBLE else pc.or_(found, pc.and_(pc.is_nan(one.data), pc.is_nan(other.data)))


def less(one: Value, other: Value) -> Any:
    found = pc.less(one.data, other.data)
    return found if one.type != DOUBLE else pc.or_(found, pc.and_not(pc.is_nan(other.data), pc.is_nan(one.data)))


def same(one: Value, other: Value) -> Any:
    """``one <=> other``: never NULL."""
    both = pc.and_(pc.is_null(one.data), pc.is_null(other.data))
    return pc.or_(pc.fill_null(equal(one, other), False), both)


COMPARISONS: Mapping[str, Comparison] = {
    "=": equal,
    "<>": lambda one, other: pc.invert(equal(one, other)),
    "<": less,
    ">": lambda one, other: less(other, one),
    "<=": lambda one, other: pc.invert(less(other, one)),
    ">=": lambda one, other: pc.invert(less(one, other)),
}


def is_column(value: Value) -> bool:
    return not isinstance(value.data, pa.Scalar)
