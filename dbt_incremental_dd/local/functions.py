"""Functions that are evaluated on the driver, by name. Each takes values, at least one of them a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, DATE, FLOATS, INTEGER, STRING, VOID, Type
from dbt_incremental_dd.local import decimals
from dbt_incremental_dd.local.value import NotExact, Value

_MANY = 1_000


@dataclass(frozen=True)
class _Function:
    """``least`` and ``most``: how many arguments it takes."""

    apply: Callable[..., Value]
    least: int
    most: int


def call(name: str, arguments: Sequence[Value]) -> Value:
    """The function's value. Raises NotExact where it is not one of those here, or not for these arguments."""
    function = _FUNCTIONS.get(name)
    if function is None or not function.least <= len(arguments) <= function.most:
        raise NotExact
    return function.apply(*arguments)


def _coalesce(*values: Value) -> Value:
    type, data = _alike(values)
    return Value(pc.coalesce(*data), type)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Value]:
    """The greatest or the least; NULLs do not count."""

    def extreme(*values: Value) -> Value:
        type, data = _alike(values)
        if not decimals.is_comparable(type) or type == BOOLEAN:
            raise NotExact
        return Value(choose(*data), type)

    return extreme


def _alike(values: Sequence[Value]) -> tuple[Type, list[Any]]:
    type = decimals.common_type([value.type for value in values])
    if type in (VOID, *FLOATS):
        raise NotExact
    return type, [decimals.widened(value, type).data for value in values]


def _of_ascii(change: Callable[[Any], Any]) -> Callable[[Value], Value]:
    """A change of letters: what that means for other characters depends on the version of Unicode."""

    def changed(value: Value) -> Value:
        _require(value, STRING)
        if not pc.all(pc.string_is_ascii(value.data)).as_py() and pc.any(pc.is_valid(value.data)).as_py():
            raise NotExact
        return Value(change(value.data), STRING)

    return changed


def _length(value: Value) -> Value:
    """Characters."""
    _require(value, STRING)
    return Value(pc.utf8_length(value.data), INTEGER)


def _substring(value: Value, start: Value, length: Value | None = None) -> Value:
    """From a constant place on, counted from 1."""
    _require(value, STRING)
    first = _constant(start)
    count = None if length is None else _constant(length)
    if first < 0 or (count is not None and count < 0):
        raise NotExact
    begin = max(first - 1, 0)
    # Before the first character there is nothing, but it is counted.
    end = None if count is None else max(begin, (first - 1 if first else 0) + count)
    return Value(pc.utf8_slice_codeunits(value.data, begin, end), STRING)


def _concat(*values: Value) -> Value:
    for value in values:
        _require(value, STRING)
    parts = (value.data for value in values)
    return Value(pc.binary_join_element_wise(*parts, "", null_handling="emit_null"), STRING)


def _of_date(part: Callable[[Any], Any]) -> Callable[[Value], Value]:
    def taken(value: Value) -> Value:
        _require(value, DATE)
        return Value(pc.cast(part(value.data), pa.int32()), INTEGER)

    return taken


def _constant(value: Value) -> int:
    if not isinstance(value.data, pa.Scalar) or value.type != INTEGER or not value.data.is_valid:
        raise NotExact
    return int(value.data.as_py())


def _require(value: Value, type: Type) -> None:
    if value.type != type:
        raise NotExact


_FUNCTIONS = {
    "abs": _Function(decimals.absolute, 1, 1),
    "coalesce": _Function(_coalesce, 1, _MANY),
    "concat": _Function(_concat, 1, _MANY),
    "greatest": _Function(_extreme(pc.max_element_wise), 2, _MANY),
    "ifnull": _Function(_coalesce, 2, 2),
    "least": _Function(_extreme(pc.min_element_wise), 2, _MANY),
    "length": _Function(_length, 1, 1),
    "lower": _Function(_of_ascii(pc.ascii_lower), 1, 1),
    "nvl": _Function(_coalesce, 2, 2),
    "substring": _Function(_substring, 2, 3),
    "upper": _Function(_of_ascii(pc.ascii_upper), 1, 1),
    "year": _Function(_of_date(pc.year), 1, 1),
    "month": _Function(_of_date(pc.month), 1, 1),
    "day": _Function(_of_date(pc.day), 1, 1),
}
