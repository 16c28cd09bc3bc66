"""Functions that read JSON texts. A text that is no plain JSON is Spark's to read: it looks at no more of one than it
needs, and may find something before what is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.json_values import DECODER, Number, has_lone_surrogate, struct_maker
from dbt_incremental_dd.core.types import (
    INTEGER,
    STRING,
    Struct,
)
from dbt_incremental_dd.local.casts import type_of
from dbt_incremental_dd.local.functions.function import Functions, fixed
from dbt_incremental_dd.local.functions.json_writer import written
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, by_row, column, constant_text, require
from dbt_incremental_dd.trace.arrow import arrow_type

_STEP = re.compile(r"\.([A-Za-z_]\w*)|\['([^'?\[\].]+)'\]|\[(\d{1,9})\]", re.ASCII)
_SCALAR = re.compile(r"\s*[^\s{\[]")
"""How texts begin that are neither objects nor arrays: nothing is inside them."""
_NO_JSON = re.compile(r"\s*[a-eg-mo-su-zA-HJ-MO-Z]")
"""How texts begin that are no JSON at all."""
_LONGEST = 20_000
"""Characters of a text that is read once for several functions of it."""

Step = str | int


def _object_at(value: Value, path: Value) -> Value:
    """``get_json_object``, of a constant path."""
    return text_at(value, _steps(constant_text(path)))


def text_at(value: Value, steps: Sequence[Step]) -> Value:
    """What is in JSON texts at a path of names and places, as a text; NULL where nothing is. Raises NotExact."""
    require(value, STRING)
    return by_row(lambda text: _at(text, steps), STRING, value)


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
    return written(value)


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


def _length(value: Value) -> Value:
    """``json_array_length``: NULL of what is no array."""
    require(value, STRING)
    return by_row(_elements, INTEGER, value)


def _elements(text: str) -> int | None:
    found = None if _SCALAR.match(text) or not text.strip() else _read(text)
    return len(found) if isinstance(found, list) else None


FUNCTIONS: Functions = {
    "from_json": fixed(_parsed, 2),
    "get_json_object": fixed(_object_at, 2),
    "json_array_length": fixed(_length, 1),
}
