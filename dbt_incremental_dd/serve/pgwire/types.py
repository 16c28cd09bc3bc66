"""Postgres types of Arrow types: their OIDs, and whole columns encoded as text or in binary."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire import datetimes, numeric
from dbt_incremental_dd.subscribe.json_values import json_column

BOOL, BYTEA, NAME, INT8, INT2, INT4, TEXT, OID, JSON = 16, 17, 19, 20, 21, 23, 25, 26, 114
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 700, 701, 705, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, NUMERIC, UUID = 1082, 1083, 1114, 1184, 1186, 1700, 2950

Values = list[bytes | None]
_Column = Any
"""A pyarrow array."""


@dataclass(frozen=True)
class PgType:
    """``size``: in bytes, -1 if it varies. ``text`` and ``binary`` encode a column."""

    oid: int
    size: int
    text: Callable[[_Column], Values]
    binary: Callable[[_Column], Values]


@cache
def pg_type(arrow: pa.DataType) -> PgType:
    """The Postgres type of a column. Types without an equivalent become TEXT, or JSON if they are nested."""
    if pa.types.is_dictionary(arrow):
        inner = pg_type(arrow.value_type)
        return PgType(inner.oid, inner.size, _decoded(inner.text), _decoded(inner.binary))
    return next((kind for belongs, kind in _TYPES if belongs(arrow)), _TEXT)


def encode(column: pa.ChunkedArray, *, binary: bool) -> Values:
    """A column's values, encoded; None is NULL."""
    kind = pg_type(column.type)
    return (kind.binary if binary else kind.text)(column)


def _each(form: Callable[[Any], bytes]) -> Callable[[_Column], Values]:
    return lambda column: [None if value is None else form(value) for value in column.to_pylist()]


def _numbers(form: Callable[[int], bytes], arrow: pa.DataType) -> Callable[[_Column], Values]:
    """Encodes a column's values as integers in the unit of ``arrow``."""
    stored = pa.int32() if arrow == pa.date32() else pa.int64()

    def values(column: _Column) -> Values:
        whole = column.cast(arrow, safe=False).cast(stored)
        return [None if value is None else form(value) for value in whole.to_pylist()]

    return values


def _decoded(form: Callable[[_Column], Values]) -> Callable[[_Column], Values]:
    return lambda column: form(column.cast(column.type.value_type))


def _packed(layout: str) -> Callable[[_Column], Values]:
    return _each(struct.Struct(layout).pack)


def _digits(column: _Column) -> Values:
    """Numbers as text in their shortest form, which Arrow writes."""
    spelled = {"nan": b"NaN", "-nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}
    texts = column.cast(pa.string()).to_pylist()
    return [None if text is None else spelled.get(text) or text.encode() for text in texts]


def _json(column: _Column) -> Values:
    plain = json_column(column)
    return [None if value is None else json.dumps(value, ensure_ascii=False).encode() for value in plain]


_texts = _each(lambda value: str(value).replace("\x00", "").encode(errors="replace"))
_TEXT = PgType(TEXT, -1, _texts, _texts)


def _timestamp(unit: str, zone: str | None = None) -> pa.DataType:
    return pa.timestamp(unit, zone)


def _is_zoned(arrow: pa.DataType) -> bool:
    return pa.types.is_timestamp(arrow) and arrow.tz is not None


_DAYS, _US, _UTC, _TIME = pa.date32(), _timestamp("us"), _timestamp("us", "UTC"), pa.time64("us")
_is = pa.types

_TYPES: tuple[tuple[Callable[[pa.DataType], bool], PgType], ...] = (
    (_is.is_int64, PgType(INT8, 8, _digits, _packed("!q"))),
    (_is.is_int32, PgType(INT4, 4, _digits, _packed("!i"))),
    (lambda t: t in (pa.int8(), pa.int16(), pa.uint8()), PgType(INT2, 2, _digits, _packed("!h"))),
    (_is.is_uint16, PgType(INT4, 4, _digits, _packed("!i"))),
    (_is.is_uint32, PgType(INT8, 8, _digits, _packed("!q"))),
    (_is.is_boolean, PgType(BOOL, 1, _each(lambda v: b"t" if v else b"f"), _packed("!?"))),
    (lambda t: t in (pa.float32(), pa.float16()), PgType(FLOAT4, 4, _digits, _packed("!f"))),
    (_is.is_float64, PgType(FLOAT8, 8, _digits, _packed("!d"))),
    (
        lambda t: _is.is_decimal(t) or t == pa.uint64(),
        PgType(NUMERIC, -1, _each(lambda v: format(Decimal(v), "f").encode()), _each(numeric.pack)),
    ),
    (
        lambda t: _is.is_binary(t) or _is.is_large_binary(t) or _is.is_fixed_size_binary(t) or t == pa.binary_view(),
        PgType(BYTEA, -1, _each(lambda v: b"\\x" + v.hex().encode()), _each(bytes)),
    ),
    (_is.is_date, PgType(DATE, 4, _numbers(datetimes.date_text, _DAYS), _numbers(datetimes.date_bytes, _DAYS))),
    (
        _is_zoned,
        PgType(TIMESTAMPTZ, 8, _numbers(datetimes.zoned_text, _UTC), _numbers(datetimes.timestamp_bytes, _UTC)),
    ),
    (
        _is.is_timestamp,
        PgType(TIMESTAMP, 8, _numbers(datetimes.timestamp_text, _US), _numbers(datetimes.timestamp_bytes, _US)),
    ),
    (_is.is_time, PgType(TIME, 8, _numbers(datetimes.time_text, _TIME), _numbers(struct.Struct("!q").pack, _TIME))),
    (_is.is_interval, PgType(INTERVAL, 16, _each(datetimes.interval_text), _each(datetimes.interval_bytes))),
    (_is.is_nested, PgType(JSON, -1, _json, _json)),
)
