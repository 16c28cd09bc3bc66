"""A few lines of JSON read on the driver, where every value is what Spark's reader makes of it; else it is Spark's."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import BOOLEAN, DOUBLE, INTEGERS, STRING, Type
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.records import CORRUPT
from dbt_incremental_dd.trace.arrow import arrow_type

_LONGEST_LINE = 100_000
_DEEPEST = 300
"""Brackets in a line; there are bounds of Spark's parser that have nothing to do with the records."""
_ODD = re.compile(rb"\r|\x00|^\xef\xbb\xbf|\d{300}")


def parse(data: bytes, stored: Schema) -> pa.Table | None:
    """The records with the columns of ``stored``; None where some might be others to Spark, or malformed."""
    makers = {column.name: _MAKERS.get(column.type) for column in stored}
    if len(data) > MOST_BYTES or None in makers.values() or _ODD.search(data):
        return None
    folded = {name.lower() for name in makers} | {CORRUPT}
    rows = []
    try:
        for line in data.decode().removesuffix("\n").split("\n"):
            if len(line) > _LONGEST_LINE or line.count("[") + line.count("{") > _DEEPEST:
                return None
            if _has_lone_surrogate(line):
                return None
            record = _DECODER.decode(line)
            if not isinstance(record, dict) or any(k not in makers and k.lower() in folded for k in record):
                return None
            rows.append([maker(record.get(name)) for name, maker in makers.items() if maker])
        columns = list(zip(*rows, strict=True)) or [() for _ in makers]
        schema = pa.schema([(column.name, arrow_type(column.type)) for column in stored])
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
    except (ValueError, TypeError, RecursionError, OverflowError, pa.ArrowException):
        return None


def is_plain(data: bytes) -> bool:
    """Whether of no line Spark's reader leaves anything out, or puts something else in its place; False where that
    is not clear. What does not fit the columns is told by Spark itself."""
    if len(data) > MOST_BYTES or _LARGE.search(data):
        return False
    try:
        lines = _LINE_END.split(data.removeprefix(codecs.BOM_UTF8).decode())
        records = [line for line in lines if line.strip(" \t")]
        return not any(_has_lone_surrogate(line) or isinstance(_ANY.decode(line), list) for line in records)
    except (ValueError, RecursionError):
        return False


_LARGE = re.compile(rb"[0-9][eE]\+?[0-9]{2}|[0-9]{39}")
"""Numbers that may be too large for a column."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _has_lone_surrogate(line: str) -> bool:
    """Of escapes, also in what is left out; a backslash that is escaped itself begins none."""
    if "\\ud" not in line and "\\uD" not in line:
        return False
    return bool(_SURROGATE.search(_PAIR.sub(" ", line.replace("\\\\", ""))))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


_ANY = json.JSONDecoder(object_pairs_hook=_once)
_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse)


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
    if type(value) is not float or not math.isfinite(value):
        raise TypeError(value)
    return value


_MAKERS: Mapping[Type, Callable[[Any], Any]] = {
    **dict.fromkeys(INTEGERS, _as(int)),
    STRING: _as(str),
    BOOLEAN: _as(bool),
    DOUBLE: _double,
}
"""What makes a column's value of a JSON value; of other types Spark has ways of its own."""
