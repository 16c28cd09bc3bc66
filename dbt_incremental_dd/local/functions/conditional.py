"""Functions that choose among their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, DOUBLE, FLOATS, INTEGER, TIMESTAMP, VOID, Type
from dbt_incremental_dd.local import floats
from dbt_incremental_dd.local.coercion import common_type, is_comparable, is_number, widened
from dbt_incremental_dd.local.comparing import comparable, equal
from dbt_incremental_dd.local.functions.function import MANY, Function, Functions, fixed, zoned
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import require_all
from dbt_incremental_dd.trace.arrow import arrow_type


def _zero() -> Value:
    return Value(pa.scalar(0, pa.int32()), INTEGER)


def _coalesce(*values: Value) -> Value:
    type, data = _alike(values)
    return Value(pc.coalesce(*data), type)


def _extreme(*, is_greatest: bool) -> Callable[..., Value]:
    """The greatest or the least; NULLs do not count."""
    choose = pc.max_element_wise if is_greatest else pc.min_element_wise

    def extreme(*values: Value) -> Value:
        type, data = _alike(values)
        if not is_comparable(type) or type == BOOLEAN:
            raise NotExact
        if type == DOUBLE:  # Arrow passes over NaN
            return Value(floats.extreme(data, is_greatest=is_greatest), type)
        if type == TIMESTAMP:  # Arrow has none of those with a time zone
            return Value(pc.cast(choose(*(pc.cast(value, pa.int64()) for value in data)), arrow_type(type)), type)
        return Value(choose(*data), type)

    return extreme


def _alike(values: Sequence[Value]) -> tuple[Type, list[Any]]:
    type = common_type([value.type for value in values])
    if type == VOID:
        raise NotExact
    return type, [widened(value, type).data for value in values]


def _nullif(zone: str, value: Value, other: Value) -> Value:
    is_equal = pc.fill_null(equal(*comparable(value, other, zone)), False)
    return Value(pc.if_else(is_equal, pa.scalar(None, value.data.type), value.data), value.type)


def _assert_true(condition: Value, message: Value | None = None) -> Value:
    """NULL, where it holds for every row; whatever the message says."""
    if condition.type != BOOLEAN:
        raise NotExact
    require_all(pc.fill_null(condition.data, False))
    return Value(pa.scalar(None), VOID)


def _null_if_zero(zone: str, value: Value) -> Value:
    if not is_number(value.type):
        raise NotExact
    return _nullif(zone, value, _zero())


def _zero_if_null(value: Value) -> Value:
    if not is_number(value.type):
        raise NotExact
    return _coalesce(value, _zero())


def _is_nan(value: Value) -> Value:
    """False of NULL."""
    if value.type not in FLOATS:
        raise NotExact
    return Value(pc.fill_null(pc.is_nan(value.data), False), BOOLEAN)


FUNCTIONS: Functions = {
    "assert_true": Function(_assert_true, 1, 2),
    "coalesce": Function(_coalesce, 1, MANY),
    "greatest": Function(_extreme(is_greatest=True), 2, MANY),
    "ifnull": fixed(_coalesce, 2),
    "isnan": fixed(_is_nan, 1),
    "isnotnull": fixed(lambda value: Value(pc.is_valid(value.data), BOOLEAN), 1),
    "isnull": fixed(lambda value: Value(pc.is_null(value.data), BOOLEAN), 1),
    "least": Function(_extreme(is_greatest=False), 2, MANY),
    "nullif": zoned(_nullif, 2),
    "nullifzero": zoned(_null_if_zero, 1),
    "nvl": fixed(_coalesce, 2),
    "zeroifnull": fixed(_zero_if_null, 1),
}
