"""``to_json``, and values inside JSON written again, as Spark's generators of JSON write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.json_values import Number
from dbt_incremental_dd.core.types import BOOLEAN, DATE, DOUBLE, INTEGERS, STRING, Array, Decimal, Map, Struct, Type
from dbt_incremental_dd.local import double_text
from dbt_incremental_dd.local.functions.function import Functions, fixed
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, column

_ESCAPED = re.compile("[\x00-\x07\x0b\x0e-\x1f\U00010000-\U0010ffff]")
"""Characters that Spark and Python may write by other escapes."""


def written(value: Any) -> str:
    """What was read, as JSON. Raises ValueError where Spark may write it otherwise."""
    if isinstance(value, Number):
        found = double_text.text(float(value))
        if not found[-1].isdigit():
            raise ValueError(value)
        return found
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(name)}:{written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, str) and _ESCAPED.search(value):
        raise ValueError(value)
    return json.dumps(value, ensure_ascii=False)


def _as_json(value: Value) -> Value:
    """``to_json``: fields that are NULL are left out."""
    write = _writer(value.type)
    if not isinstance(value.type, Struct | Array | Map) or isinstance(value.data, pa.Scalar):
        raise NotExact
    if len(value.data) > MOST_ROWS:
        raise NotExact("many rows, one by one")
    try:
        texts = [None if item is None else write(item) for item in value.data.to_pylist()]
        return column(pa.array(texts, pa.string()), STRING)
    except (ValueError, OverflowError) as error:
        raise NotExact(str(error)) from error


def _writer(type: Type) -> Callable[[Any], str]:
    """Of values that are not NULL."""
    match type:
        case Struct():
            fields = [(field.name, written(field.name), _writer(field.type)) for field in type.fields]
            return lambda row: _object((name, write(row[own])) for own, name, write in fields if row[own] is not None)
        case Array():
            element = _writer(type.element)
            return lambda items: f"[{','.join('null' if item is None else element(item) for item in items)}]"
        case Map() if type.key == STRING:
            of_value = _writer(type.value)
            return lambda items: _object(
                (written(name), "null" if item is None else of_value(item)) for name, item in items
            )
        case Decimal():
            return str
    if type not in _WRITERS:
        raise NotExact(f"JSON of a {type}")
    return _WRITERS[type]


def _object(pairs: Any) -> str:
    return "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"


def _double(number: float) -> str:
    found = double_text.text(number)
    return found if found[-1].isdigit() else f'"{found}"'


_WRITERS: dict[Type, Callable[[Any], str]] = {
    **dict.fromkeys(INTEGERS, str),
    BOOLEAN: lambda value: "true" if value else "false",
    DATE: lambda day: f'"{day.isoformat()}"',
    DOUBLE: _double,
    STRING: written,
}


FUNCTIONS: Functions = {"to_json": fixed(_as_json, 1)}
