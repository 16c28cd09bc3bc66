"""CAST on the driver. A text is a value where every reader takes it for the same one; others are Spark's to read."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.plain_text import pattern_of
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATS,
    INTEGERS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Decimal,
    Type,
)
from dbt_incremental_dd.local import decimals, double_text
from dbt_incremental_dd.local.coercion import as_double, as_float, is_number, widened
from dbt_incremental_dd.local.decimals import EXACT
from dbt_incremental_dd.local.double_text import written
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import by_row, floor_divided, require_all
from dbt_incremental_dd.local.zones import days, local, moment, within
from dbt_incremental_dd.logical import sql_types
from dbt_incremental_dd.trace.arrow import arrow_type

_MICROS = 1_000_000
_IN_NO_NUMBER = "[A-DF-Za-df-z]"
"""A text with such a letter is no integer and no decimal, to any reader."""


def type_of(sql_type: str) -> Type:
    """The type that SQL's name of it means. Raises NotExact for one that is not known."""
    try:
        return sql_types.type_of(sql_type)
    except ValueError as error:
        raise NotExact from error


def cast(value: Value, type: Type, zone: str, *, wraps: bool = True) -> Value:
    """``CAST(value AS type)``; a decimal loses digits by rounding half up. ``wraps``: whether an integer that does not
    fit keeps its lowest bits, as it does unless the cast is tried. Raises NotExact."""
    if value.type in (type, VOID):
        return widened(value, type)
    if type == STRING:
        return Value(_text(value, zone), STRING)
    if value.type == STRING:
        return _of_text(value, type, zone)
    if type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return _of_time(value, type, zone)
    if type in FLOATS and is_number(value.type):
        return as_double(value) if type == DOUBLE else as_float(value)
    if type in INTEGERS:
        return Value(_integer(value, type, wraps=wraps), type)
    if type == BOOLEAN and value.type in INTEGERS:
        return Value(pc.not_equal(value.data, 0), BOOLEAN)
    if isinstance(type, Decimal):
        return _decimal(as_double(value), type) if value.type in FLOATS else decimals.cast(value, type)
    raise NotExact


def _decimal(value: Value, type: Decimal) -> Value:
    """Of what is written of a double; one that does not fit is Spark's."""
    step, limit = EXACT.scaleb(decimal.Decimal(1), -type.scale), decimal.Decimal(10) ** (type.precision - type.scale)

    def rounded(number: float) -> decimal.Decimal:
        found = written(number).quantize(step, decimal.ROUND_HALF_UP, EXACT)
        if abs(found) >= limit:
            raise ValueError(number)
        return found

    return by_row(rounded, type, value)


def _integer(value: Value, type: Type, *, wraps: bool) -> pa.ChunkedArray | pa.Scalar:
    """Towards zero, of decimals and doubles that fit."""
    data, kind = value.data, arrow_type(type)
    if value.type in INTEGERS:
        return pc.cast(data, kind, safe=not wraps)
    if value.type == BOOLEAN:
        return pc.cast(data, kind)
    if value.type == TIMESTAMP and type == LONG:
        return floor_divided(pc.cast(data, pa.int64()), _MICROS)
    if value.type in FLOATS or isinstance(value.type, Decimal):
        return pc.cast(pc.trunc(data), kind)
    raise NotExact


def _of_time(value: Value, type: Type, zone: str) -> Value:
    if type == DATE:
        return days(value, zone)
    if value.type == DATE:
        times = Value(pc.cast(within(value).data, pa.timestamp("us")), TIMESTAMP_NTZ)
        return moment(times, zone) if type == TIMESTAMP else times
    if value.type in INTEGERS and type == TIMESTAMP:
        micros = pc.multiply_checked(pc.cast(value.data, pa.int64()), pa.scalar(_MICROS, pa.int64()))
        return within(Value(pc.cast(micros, arrow_type(TIMESTAMP)), TIMESTAMP))
    if value.type == TIMESTAMP_NTZ:
        return moment(value, zone)
    return local(value, zone)


def _text(value: Value, zone: str) -> pa.ChunkedArray | pa.Scalar:
    if value.type in INTEGERS or value.type == BOOLEAN or isinstance(value.type, Decimal):
        return pc.cast(value.data, pa.string())
    if value.type == DATE:
        return pc.cast(within(value).data, pa.string())
    if value.type == DOUBLE:
        return by_row(double_text.text, STRING, value).data
    moments = pc.cast(local(value, zone).data, pa.string())  # with six digits of a second's fraction
    return pc.replace_substring_regex(moments, r"\.?0*$", "")


def _of_text(value: Value, type: Type, zone: str) -> Value:
    """Of plain texts; an empty text is no number, no date and no truth."""
    if type == BINARY:
        return Value(pc.cast(value.data, pa.binary()), type)
    data = _without(pc.equal(value.data, ""), value.data)
    if type in INTEGERS or isinstance(type, Decimal):
        data = _without(pc.match_substring_regex(data, _IN_NO_NUMBER), data)
    wanted = TIMESTAMP_NTZ if type == TIMESTAMP else type
    pattern = f"{pattern_of(wanted)}|{pattern_of(DATE)}" if type == TIMESTAMP else pattern_of(wanted)
    if pattern is None or (isinstance(data, pa.Scalar) and not data.is_valid):
        raise NotExact
    require_all(pc.match_substring_regex(data, f"^(?:{pattern})$"))
    require_all(pc.invert(pc.match_substring(data, "\n")))
    found = Value(pc.cast(data, arrow_type(wanted)), wanted)
    return moment(found, zone) if type == TIMESTAMP else found if is_number(type) or type == BOOLEAN else within(found)


def _without(absent: pa.ChunkedArray | pa.Scalar, data: pa.ChunkedArray | pa.Scalar) -> pa.ChunkedArray | pa.Scalar:
    """NULL in place of these."""
    return pc.if_else(absent, pa.scalar(None, pa.string()), data)
