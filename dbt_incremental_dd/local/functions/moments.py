"""Functions of moments: parts of local times, truncation, texts, and counts since 1970."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, DATE, DOUBLE, INTEGERS, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ
from dbt_incremental_dd.local import calendar, intervals
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.functions import dates
from dbt_incremental_dd.local.functions.datetime_pattern import DAYS, MONTHS, NAMED, parts_of
from dbt_incremental_dd.local.functions.function import Functions, fixed, zoned
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import (
    Array,
    column,
    constant_int,
    constant_text,
    datetimes,
    flat,
    floor_divided,
    integers,
    require,
)
from dbt_incremental_dd.local.zones import days, local, moment, within

_FIELDS = {"yyyy": (0, 4), "MM": (5, 7), "dd": (8, 10), "HH": (11, 13), "mm": (14, 16), "ss": (17, 19)}
"""Of a pattern, and where they are in ``2020-01-31 12:30:59.000000``."""
_PER_SECOND, _PER_DAY = 1_000_000, 86_400
"""Microseconds, and seconds."""
_MOST_UNITS = 1_000_000
"""That a moment is moved by."""
_EXTRACTED = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    "yearofweek": "yearofweek",
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "dayofweek_iso"),
    "doy": "dayofyear",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
}


def _local(value: Value, zone: str) -> Value:
    """The time that clocks show."""
    return local(value if value.type == TIMESTAMP_NTZ else cast(value, TIMESTAMP, zone), zone)


_PARTS: Mapping[str, Callable[[str, Value], Value]] = {
    "hour": dates.part(_local, pc.hour),
    "minute": dates.part(_local, pc.minute),
    "second": dates.part(_local, pc.second),
}


def extract(zone: str, field: str, value: Value) -> Value:
    """``EXTRACT(field FROM value)``"""
    name = _EXTRACTED.get(field.lower(), "")
    take = {**dates.PARTS, **_PARTS}.get(name)
    if take is None or value.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise NotExact
    return take(zone, value)


def _date_part(zone: str, field: Value, value: Value) -> Value:
    return extract(zone, constant_text(field), value)


def _truncated(zone: str, unit: Value, value: Value) -> Value:
    """``date_trunc``: of a date as well it is a moment."""
    name = constant_text(unit).upper()
    moments = within(cast(value, TIMESTAMP, zone))
    if name in ("MICROSECOND", "MILLISECOND", "SECOND"):
        return _floored(moments, intervals.MICROS[name])
    times = datetimes(local(moments, zone))
    truncate = calendar.truncation(name)
    if truncate is not None:
        found = truncate(times.astype("M8[D]"))
    else:
        found = times.astype({"MINUTE": "M8[m]", "HOUR": "M8[h]", "DAY": "M8[D]", "DD": "M8[D]"}.get(name) or _refuse())
    return moment(column(pa.array(found.astype("M8[us]")), TIMESTAMP_NTZ), zone)


def _refuse() -> str:
    raise NotExact


def _floored(moments: Value, unit: int) -> Value:
    units = floor_divided(pc.cast(moments.data, pa.int64()), unit)
    return Value(pc.cast(pc.multiply(units, pa.scalar(unit, pa.int64())), moments.data.type), TIMESTAMP)


def _formatted(zone: str, value: Value, pattern: Value) -> Value:
    """``date_format`` by fields of fixed width, names, and what stands between them."""
    parts = parts_of(constant_text(pattern))
    times = _local(value, zone).data
    written = pc.cast(times, pa.string())
    pieces = [_field(part.text, times, written) if part.is_field else part.text for part in parts]
    return Value(pc.binary_join_element_wise(*pieces, "", null_handling="emit_null"), STRING)


def _field(field: str, times: pa.ChunkedArray, written: pa.ChunkedArray) -> pa.ChunkedArray:
    """``written``: the local times as texts."""
    if field in _FIELDS:
        return pc.utf8_slice_codeunits(written, *_FIELDS[field])
    if field not in NAMED:
        raise NotExact
    of_week = field.startswith("E")
    names = DAYS if of_week else MONTHS
    numbers = pc.day_of_week(times) if of_week else pc.subtract(pc.month(times), 1)
    return pa.array([name if len(field) > 3 else name[:3] for name in names]).take(flat(numbers))


def _count(unit: int) -> Callable[[Value], Value]:
    """Of units since 1970, rounded down."""

    def counted(value: Value) -> Value:
        require(value, TIMESTAMP)
        return Value(floor_divided(pc.cast(value.data, pa.int64()), unit), LONG)

    return counted


def _moment_of(unit: int) -> Callable[[Value], Value]:
    def made(value: Value) -> Value:
        require(value, *INTEGERS)
        micros = pc.multiply_checked(pc.cast(value.data, pa.int64()), pa.scalar(unit, pa.int64()))
        return within(Value(pc.cast(micros, pa.timestamp("us", "UTC")), TIMESTAMP))

    return made


def _unix_timestamp(zone: str, value: Value) -> Value:
    """Whole seconds, towards zero."""
    if value.type == STRING:
        raise NotExact
    micros = pc.cast(cast(value, TIMESTAMP, zone).data, pa.int64())
    return Value(pc.divide(micros, pa.scalar(_PER_SECOND, pa.int64())), LONG)


def _from_unix_time(zone: str, seconds: Value, pattern: Value | None = None) -> Value:
    require(seconds, *INTEGERS)
    moments = _moment_of(_PER_SECOND)(seconds)
    return cast(moments, STRING, zone) if pattern is None else _formatted(zone, moments, pattern)


def difference(zone: str, unit: str, start: Value, end: Value) -> Value:
    """``timestampdiff(unit, start, end)``: whole units, towards zero."""
    first, last = (datetimes(_local(value, zone)) for value in (start, end))
    micros = (last - first).astype("m8[us]")
    name, nulls = unit.upper(), np.isnat(micros)
    if name in intervals.MONTHS:
        whole, per = calendar.months_between(first, last), intervals.MONTHS[name]
    else:
        whole, per = micros.astype(np.int64), intervals.MICROS.get(name) or int(_refuse())
    whole = np.where(nulls, 0, whole)
    return column(pa.array(np.sign(whole) * (np.abs(whole) // per), pa.int64(), mask=nulls), LONG)


def moved(zone: str, unit: str, count: Value, value: Value) -> Value:
    """``timestampadd(unit, count, value)`` of a constant count."""
    number = constant_int(count)
    if abs(number) > _MOST_UNITS:
        raise NotExact
    return intervals.later(cast(value, TIMESTAMP, zone), intervals.Interval.of(unit.upper(), number), zone)


@dataclass(frozen=True)
class _Times:
    """``months`` since 1970, days of the month from 0 on, seconds of the day, and whether the day is its month's
    last; ``nulls`` says where there is none."""

    months: Array
    days: Array
    seconds: Array
    is_last: Array
    nulls: Array

    @staticmethod
    def of(value: Value, zone: str) -> _Times:
        if value.type not in (DATE, TIMESTAMP):
            raise NotExact
        date = days(value, zone)
        found = datetimes(date)
        months, nulls = found.astype("M8[M]"), np.isnat(found)
        elapsed = np.zeros(1, np.int64)
        if value.type == TIMESTAMP:
            midnight = moment(Value(pc.cast(date.data, pa.timestamp("us")), TIMESTAMP_NTZ), zone)
            elapsed = integers(Value(pc.subtract(*(pc.cast(v.data, pa.int64()) for v in (value, midnight))), LONG))[0]
        ends = (months + 1).astype("M8[D]") - 1
        numbers = (found - months.astype("M8[D]")).astype(np.int64)
        return _Times(months.astype(np.int64), numbers, elapsed // _PER_SECOND, found == ends, nulls)


def _months_between(zone: str, one: Value, other: Value, rounds: Value | None = None) -> Value:
    """Whole ones between equal days and between last days; else with the rest in months of 31 days, rounded to eight
    places unless ``rounds`` is false."""
    is_rounded = rounds is None or (isinstance(rounds.data, pa.Scalar) and rounds.data.as_py())
    if rounds is not None and (not isinstance(rounds.data, pa.Scalar) or rounds.type != BOOLEAN):
        raise NotExact
    a, b = _Times.of(one, zone), _Times.of(other, zone)
    whole = (a.months - b.months).astype(np.float64)
    rest = (a.days - b.days) * _PER_DAY + a.seconds - b.seconds
    found = whole + rest / (31.0 * _PER_DAY)
    found = np.floor(found * 1e8 + 0.5) / 1e8 if is_rounded else found
    found = np.where((a.days == b.days) | (a.is_last & b.is_last), whole, found)
    return column(pa.array(found, mask=a.nulls | b.nulls), DOUBLE)


def _from_utc(value: Value, zone: Value) -> Value:
    """What clocks of a constant zone show, as if they were in UTC."""
    require(value, TIMESTAMP)
    return moment(local(value, constant_text(zone)), "UTC")


def _to_utc(value: Value, zone: Value) -> Value:
    """When clocks of a constant zone show what those in UTC do."""
    require(value, TIMESTAMP)
    return moment(local(value, "UTC"), constant_text(zone))


FUNCTIONS: Functions = {
    **{name: zoned(part, 1) for name, part in _PARTS.items()},
    "date_format": zoned(_formatted, 2),
    "date_part": zoned(_date_part, 2),
    "date_trunc": zoned(_truncated, 2),
    "datepart": zoned(_date_part, 2),
    "months_between": zoned(_months_between, 2, 3),
    "from_utc_timestamp": fixed(_from_utc, 2),
    "from_unixtime": zoned(_from_unix_time, 1, 2),
    "timestamp_micros": fixed(_moment_of(1), 1),
    "timestamp_millis": fixed(_moment_of(1_000), 1),
    "timestamp_seconds": fixed(_moment_of(_PER_SECOND), 1),
    "to_utc_timestamp": fixed(_to_utc, 2),
    "to_unix_timestamp": zoned(_unix_timestamp, 1),
    "unix_micros": fixed(_count(1), 1),
    "unix_millis": fixed(_count(1_000), 1),
    "unix_seconds": fixed(_count(_PER_SECOND), 1),
    "unix_timestamp": zoned(_unix_timestamp, 1),
}
