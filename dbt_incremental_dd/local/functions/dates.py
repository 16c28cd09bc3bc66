"""Functions of dates. A moment or a plain text is the date that CAST makes of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BYTE, DATE, INTEGER, SHORT
from dbt_incremental_dd.local import arithmetic, calendar
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.functions.function import Functions, fixed, zoned
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import (
    Array,
    by_row,
    column,
    constant_text,
    datetimes,
    integers,
    require,
    require_all,
)
from dbt_incremental_dd.local.zones import within

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_LONG_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MOST_MONTHS = 12 * 20_000


def date_of(value: Value, zone: str) -> Value:
    """The date that a function takes of its argument."""
    return within(cast(value, DATE, zone))


def part(of: Callable[[Value, str], Value], take: Callable[[Any], Any]) -> Callable[[str, Value], Value]:
    """A number that is part of what ``of`` makes of a value."""

    def taken(zone: str, value: Value) -> Value:
        return Value(pc.cast(take(of(value, zone).data), pa.int32()), INTEGER)

    return taken


def _part(take: Callable[[Any], Any]) -> Callable[[str, Value], Value]:
    return part(date_of, take)


PARTS: Mapping[str, Callable[[str, Value], Value]] = {
    "year": _part(pc.year),
    "quarter": _part(pc.quarter),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "dayofmonth": _part(pc.day),
    "dayofyear": _part(pc.day_of_year),
    "dayofweek": _part(lambda days: pc.day_of_week(days, count_from_zero=False, week_start=7)),
    "dayofweek_iso": _part(lambda days: pc.day_of_week(days, count_from_zero=False, week_start=1)),
    "weekday": _part(lambda days: pc.day_of_week(days, count_from_zero=True, week_start=1)),
    "weekofyear": _part(pc.iso_week),
    "yearofweek": _part(pc.iso_year),
}


def _dates(days: Array) -> Value:
    return within(column(pa.array(days.astype("M8[D]")), DATE))


def _shifted(sign: int) -> Callable[[str, Value, Value], Value]:
    def shifted(zone: str, date: Value, days: Value) -> Value:
        return arithmetic.later(date_of(date, zone), days, sign)

    return shifted


def _difference(zone: str, end: Value, start: Value) -> Value:
    """Days, of ``datediff(end, start)``."""
    late, early = (pc.cast(date_of(value, zone).data, pa.int32()) for value in (end, start))
    return Value(pc.subtract(late, early), INTEGER)


def _add_months(zone: str, date: Value, months: Value) -> Value:
    require(months, BYTE, SHORT, INTEGER)
    days = datetimes(date_of(date, zone))
    count, nulls = integers(months)
    if count.size and np.abs(count).max() > _MOST_MONTHS:
        raise NotExact
    steps = count.astype("m8[M]")
    steps[nulls] = np.timedelta64("NaT")
    return _dates(calendar.add_months(days, steps))


def _last_day(zone: str, date: Value) -> Value:
    return _dates(calendar.last_day(datetimes(date_of(date, zone))))


def _trunc(zone: str, date: Value, unit: Value) -> Value:
    truncate = calendar.truncation(constant_text(unit))
    if truncate is None:
        raise NotExact
    return _dates(truncate(datetimes(date_of(date, zone))))


def _next_day(zone: str, date: Value, day: Value) -> Value:
    name = constant_text(day).upper()
    wanted = next((i for i, long in enumerate(_LONG_DAYS) if name in (_DAYS[i], long[:3], long)), None)
    if wanted is None:
        raise NotExact
    days = datetimes(date_of(date, zone))
    return _dates(days + 1 + (wanted - 4 - days.astype(np.int64)) % 7)


def _make_date(year: Value, month: Value, day: Value) -> Value:
    """No date where there is none of that day."""
    for part in (year, month, day):
        require(part, BYTE, SHORT, INTEGER)
    require_all(pc.and_(pc.greater(year.data, 0), pc.less(year.data, 10_000)))
    return by_row(_date, DATE, year, month, day)


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def _unix_date(date: Value) -> Value:
    require(date, DATE)
    return Value(pc.cast(date.data, pa.int32()), INTEGER)


def _from_unix_date(days: Value) -> Value:
    require(days, BYTE, SHORT, INTEGER)
    return within(Value(pc.cast(pc.cast(days.data, pa.int32()), pa.date32()), DATE))


FUNCTIONS: Functions = {
    **{name: zoned(part, 1) for name, part in PARTS.items() if name not in ("dayofweek_iso", "yearofweek")},
    "add_months": zoned(_add_months, 2),
    "date_add": zoned(_shifted(1), 2),
    "date_diff": zoned(_difference, 2),
    "date_from_unix_date": fixed(_from_unix_date, 1),
    "date_sub": zoned(_shifted(-1), 2),
    "dateadd": zoned(_shifted(1), 2),
    "datediff": zoned(_difference, 2),
    "last_day": zoned(_last_day, 1),
    "make_date": fixed(_make_date, 3),
    "next_day": zoned(_next_day, 2),
    "trunc": zoned(_trunc, 2),
    "unix_date": fixed(_unix_date, 1),
}
