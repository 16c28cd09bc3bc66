"""Functions of texts that are JSON. A text that is no plain JSON is Spark's to read: it looks at no more of one than it
needs, and may find something before what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.json_values import DECODER, Number, has_lone_surrogate, struct_maker
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGERS,
    STRING,
    Array,
    Decimal,
    Map,
    Struct,
    Type,
)
from dbt_incremental_dd.local import double_text
from dbt_incremental_dd.local.casts import type_of
from dbt_incremental_dd.local.functions.function import Functions, fixed
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, by_row, column, constant_text, require
from dbt_incremental_dd.trace.arrow import arrow_type

_STEP = re.compile(r"\.([A-Za-z_]\w*)|\['([^'?\[\].]+)'\]|\[(\d{1,9})\]", re.ASCII)
_SCALAR = re.compile(r"\s*[^\s{\[]")
"""What begins no object and no array: whatever it is, it has no parts."""
_NO_JSON = re.compile(r"\s*[a-eg-mo-su-zA-HJ-MO-Z]")
"""What begins no value at all."""
_ESCAPED = re.compile("[\x00-\x07\x0b\x0e-\x1f\U00010000-\U0010ffff]")
"""Characters that Spark and Python may write by other escapes."""
_LONGEST = 20_000
"""Characters of a text that is read once for several functions of it."""

Step = str | int


def _field(value: Value, path: Value) -> Value:
    """``get_json_object``: what is at a constant path of names and places."""
    require(value, STRING)
    steps = _steps(constant_text(path))
    return by_row(lambda text: _at(text, steps), STRING, value)


def json_field(value: Value, name: str) -> Value:
    """A field of objects as a text. Raises NotExact."""
    require(value, STRING)
    return by_row(lambda text: _at(text, [name]), STRING, value)


def _steps(path: str) -> list[Step]:
    rest, steps = path.removeprefix("$"), list[Step]()
    if rest == path or not rest:
        raise NotExact("a path")
    while rest:
        step = _STEP.match(rest)
        if step is None:
            raise NotExact("a path")
        steps.append(int(step[3]) if step[3] else step[1] or step[2])
        rest = rest[step.end() :]
    return steps


def _at(text: str, steps: Sequence[Step]) -> str | None:
    if _SCALAR.match(text) or not text.strip():
        return None
    found = _read(text)
    for step in steps:
        if isinstance(found, dict) and isinstance(step, str):
            found = found.get(step)
        elif isinstance(found, list) and isinstance(step, int) and step < len(found):
            found = found[step]
        else:
            return None
    if found is None and isinstance(steps[-1], int):  # an element is written, a field that is null is not
        return "null"
    return _shown(found)


def _shown(value: Any) -> str | None:
    """A value inside JSON as a text: a text as it is, anything else as JSON. Raises ValueError where Spark may write it
    otherwise."""
    if value is None or (isinstance(value, str) and not isinstance(value, Number)):
        return value
    return _written(value)


def _written(value: Any) -> str:
    if isinstance(value, Number):
        found = double_text.text(float(value))
        if not found[-1].isdigit():
            raise ValueError(value)
        return found
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(name)}:{_written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str) and _ESCAPED.search(value):
        raise ValueError(value)
    return json.dumps(value, ensure_ascii=False)


def _read(text: str) -> Any:
    return _read_once(text) if len(text) <= _LONGEST else _decoded(text)


def _decoded(text: str) -> Any:
    if has_lone_surrogate(text):
        raise ValueError(text)
    try:
        return DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested deeply") from error


_read_once = lru_cache(maxsize=2_048)(_decoded)


def _parsed(value: Value, schema: Value) -> Value:
    """``from_json`` of objects, by a constant schema of a struct; of what is no JSON all fields are NULL."""
    require(value, STRING)
    type = _struct_of(constant_text(schema))
    make = struct_maker(type.fields)

    def record(text: str) -> dict[str, Any]:
        if _NO_JSON.match(text):
            return {field.name: None for field in type.fields}
        try:
            found = make(_read(text))
        except TypeError as error:
            raise ValueError(text) from error
        if found is None:
            raise ValueError(text)
        return found

    if len(value.data) > MOST_ROWS:
        raise NotExact("many rows, one by one")
    try:
        rows = [None if text is None else record(text) for text in value.data.to_pylist()]
        return column(pa.array(rows, arrow_type(type)), type)
    except (ValueError, OverflowError) as error:
        raise NotExact(str(error)) from error


def _struct_of(schema: str) -> Struct:
    """Of ``a INT, b STRING``, or ``STRUCT<a: INT>``."""
    text = schema.strip()
    is_whole = text.upper().startswith("STRUCT<")
    if not is_whole and ":" in re.sub(r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*>", "", text):
        raise NotExact("a schema")
    found = type_of(text if is_whole else f"STRUCT<{text}>")
    if not isinstance(found, Struct) or arrow_type(found) is None:
        raise NotExact("a schema")
    try:
        struct_maker(found.fields)
    except TypeError as error:
        raise NotExact("a schema of special types") from error
    return found


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
            fields = [(field.name, _written(field.name), _writer(field.type)) for field in type.fields]
            return lambda row: _object((name, write(row[own])) for own, name, write in fields if row[own] is not None)
        case Array():
            element = _writer(type.element)
            return lambda items: f"[{','.join('null' if item is None else element(item) for item in items)}]"
        case Map() if type.key == STRING:
            of_value = _writer(type.value)
            return lambda items: _object(
                (_written(name), "null" if item is None else of_value(item)) for name, item in items
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
    STRING: _written,
}


def _length(value: Value) -> Value:
    """``json_array_length``: NULL of what is no array."""
    require(value, STRING)
    return by_row(_elements, INTEGER, value)


def _elements(text: str) -> int | None:
    found = None if _SCALAR.match(text) or not text.strip() else _read(text)
    return len(found) if isinstance(found, list) else None


FUNCTIONS: Functions = {
    "from_json": fixed(_parsed, 2),
    "get_json_object": fixed(_field, 2),
    "json_array_length": fixed(_length, 1),
    "to_json": fixed(_as_json, 1),
}
