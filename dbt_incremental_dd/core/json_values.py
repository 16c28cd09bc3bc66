"""JSON values as values of a type, as Spark's JSON reader makes them. What Spark might read otherwise is refused."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from dbt_incremental_dd.core.plain_text import Moments, parser_of
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
)

_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def has_lone_surrogate(line: str) -> bool:
    """Whether an escape of the text is half of a surrogate pair, also in parts that nobody reads. An escaped backslash
    begins no escape."""
    if "\\ud" not in line and "\\uD" not in line:
        return False
    return bool(_SURROGATE.search(_PAIR.sub(" ", line.replace("\\\\", ""))))


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, of its names and values. Raises ValueError where a name comes twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


class Number(str):
    """The text of a number that is not whole."""


DECODER = json.JSONDecoder(object_pairs_hook=once, parse_constant=_refuse, parse_float=Number)
"""Raises ValueError for what is no JSON, or might be something else to Spark."""


def _as(kind: type) -> Callable[[Any], Any]:
    def make(value: Any) -> Any:
        if value is not None and type(value) is not kind:
            raise TypeError(value)
        return value

    return make


def _double(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if type(value) is not Number or not math.isfinite(float(value)):
        raise TypeError(value)
    return float(value)


def _plain(dtype: Type, *kinds: type, moments: Moments | None = None) -> Callable[[Any], Any]:
    """Of values of these kinds whose text is plain."""
    parse = parser_of(dtype, moments)
    assert parse is not None

    def make(value: Any) -> Any:
        if value is None:
            return None
        if type(value) not in kinds:
            raise TypeError(value)
        return parse(str(value))

    return make


def struct_maker(
    fields: Sequence[Field], taken: Collection[str] = (), moments: Moments | None = None
) -> Callable[[Any], dict[str, Any] | None]:
    """Of objects, whose other names are passed over; not of those that differ in case alone, or are in ``taken``."""
    makers = {field.name: maker_of(field.type, moments) for field in fields}
    folded = {name.lower() for name in makers} | set(taken)

    def make(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        if type(value) is not dict or any(name not in makers and name.lower() in folded for name in value):
            raise TypeError(value)
        return {name: maker(value.get(name)) for name, maker in makers.items()}

    return make


def _array(element: Callable[[Any], Any]) -> Callable[[Any], list[Any] | None]:
    def make(value: Any) -> list[Any] | None:
        if value is not None and type(value) is not list:
            raise TypeError(value)
        return None if value is None else [element(item) for item in value]

    return make


def _map(of_value: Callable[[Any], Any]) -> Callable[[Any], list[tuple[str, Any]] | None]:
    """Of objects, by their names."""

    def make(value: Any) -> list[tuple[str, Any]] | None:
        if value is not None and type(value) is not dict:
            raise TypeError(value)
        return None if value is None else [(name, of_value(item)) for name, item in value.items()]

    return make


def maker_of(dtype: Type, moments: Moments | None = None) -> Callable[[Any], Any]:
    """What makes a value of the type of a JSON value; ``moments``: of local times. Raises TypeError for a type of which
    Spark has ways of its own."""
    if isinstance(dtype, Struct):
        return struct_maker(dtype.fields, moments=moments)
    if isinstance(dtype, Array):
        return _array(maker_of(dtype.element, moments))
    if isinstance(dtype, Map) and dtype.key == STRING:
        return _map(maker_of(dtype.value, moments))
    if dtype == TIMESTAMP:
        return _plain(dtype, str, moments=moments)
    if isinstance(dtype, Decimal):
        return _plain(dtype, int, str, Number)
    if dtype not in _MAKERS:
        raise TypeError(dtype)
    return _MAKERS[dtype]


_MAKERS: Mapping[Type, Callable[[Any], Any]] = {
    **dict.fromkeys(INTEGERS, _as(int)),
    STRING: _as(str),
    BOOLEAN: _as(bool),
    DOUBLE: _double,
    **{dtype: _plain(dtype, str) for dtype in (DATE, TIMESTAMP_NTZ)},  # of numbers Spark makes seconds
}
"""Of flat types."""
