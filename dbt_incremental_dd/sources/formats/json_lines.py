"""A few lines of JSON read on the driver, where every value is what Spark's reader makes of it; else it is Spark's."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from dbt_incremental_dd.core.plain_text import parser_of
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Field,
    Struct,
    Type,
)
from dbt_incremental_dd.sources.formats.limits import MOST_BYTES
from dbt_incremental_dd.sources.records import CORRUPT
from dbt_incremental_dd.trace.arrow import value_type

_LONGEST_LINE = 100_000
_DEEPEST = 300
"""Brackets in a line; there are bounds of Spark's parser that have nothing to do with the records."""
_ODD = re.compile(rb"\r|\x00|^\xef\xbb\xbf|\d{300}")


def parse(data: bytes, stored: Schema, *, ignores_nulls: bool = False) -> pa.Table | None:
    """The records with the columns of ``stored``; None where some might be others to Spark, or malformed.

    ``ignores_nulls``: a line that is ``null`` is no record.
    """
    data = data.replace(b"\r\n", b"\n")
    if _ODD.search(data):
        return None
    rows = []
    try:
        record_of = _struct([Field(column.name, column.type) for column in stored], {CORRUPT})
        for line in data.decode().removesuffix("\n").split("\n"):
            if len(line) > _LONGEST_LINE or line.count("[") + line.count("{") > _DEEPEST:
                return None
            if _has_lone_surrogate(line):
                return None
            record = record_of(_DECODER.decode(line))
            if record is not None:
                rows.append(record)
            elif not ignores_nulls:
                return None
        schema = pa.schema([(column.name, value_type(column.type)) for column in stored])
        return pa.Table.from_pylist(rows, schema)
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


class _Number(str):
    """The text of a number that is not whole."""


_ANY = json.JSONDecoder(object_pairs_hook=_once)
_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse, parse_float=_Number)


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
    if type(value) is not _Number or not math.isfinite(float(value)):
        raise TypeError(value)
    return float(value)


def _plain(dtype: Type, *kinds: type) -> Callable[[Any], Any]:
    """Of values of these kinds whose text is plain."""
    parse = parser_of(dtype)
    assert parse is not None

    def make(value: Any) -> Any:
        if value is None:
            return None
        if type(value) not in kinds:
            raise TypeError(value)
        return parse(str(value))

    return make


def _struct(fields: Sequence[Field], taken: Collection[str] = ()) -> Callable[[Any], dict[str, Any] | None]:
    """Of objects, whose other names are passed over; not of those that differ in case alone, or are in ``taken``."""
    makers = {field.name: _maker(field.type) for field in fields}
    folded = {name.lower() for name in makers} | set(taken)

    def make(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        if type(value) is not dict or any(name not in makers and name.lower() in folded for name in value):
            raise TypeError(value)
        return {name: maker(value.get(name)) for name, maker in makers.items()}

    return make


def _maker(dtype: Type) -> Callable[[Any], Any]:
    """What makes a value of the type of a JSON value. Raises TypeError for a type of which Spark has ways of its
    own."""
    if isinstance(dtype, Struct):
        return _struct(dtype.fields)
    if isinstance(dtype, Decimal):
        return _plain(dtype, int, str, _Number)
    if dtype not in _MAKERS:
        raise TypeError(dtype)
    return _MAKERS[dtype]


_MAKERS: Mapping[Type, Callable[[Any], Any]] = {
    **dict.fromkeys(INTEGERS, _as(int)),
    STRING: _as(str),
    BOOLEAN: _as(bool),
    DOUBLE: _double,
    **{dtype: _plain(dtype, str) for dtype in (DATE, TIMESTAMP, TIMESTAMP_NTZ)},  # of numbers Spark makes seconds
}
"""Of flat types."""
