"""Dates and moments an interval later or before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from dbt_incremental_dd.local import calendar
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import Array, column, datetimes
from dbt_incremental_dd.local.zones import local, moment, within
from dbt_incremental_dd.trace.arrow import arrow_type

_LITERAL = re.compile(r"INTERVAL (?:(- )?(\d{1,6})|'(-?)(\d{1,6})') (\w+?)S?", re.ASCII)
_SECOND = 1_000_000
MICROS: Mapping[str, int] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3_600 * _SECOND,
    "DAY": calendar.MICROS_OF_DAY,
    "WEEK": 7 * calendar.MICROS_OF_DAY,
}
MONTHS: Mapping[str, int] = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


@dataclass(frozen=True)
class Interval:
    """Months and days, which are of various lengths, and microseconds."""

    months: int
    days: int
    micros: int

    @staticmethod
    def of(unit: str, count: int) -> Interval:
        """So many of a unit. Raises NotExact for one that is not known."""
        if unit in MONTHS:
            return Interval(count * MONTHS[unit], 0, 0)
        if unit not in MICROS:
            raise NotExact
        micros = count * MICROS[unit]
        days = micros // calendar.MICROS_OF_DAY if unit in ("DAY", "WEEK") else 0
        return Interval(0, days, 0 if days else micros)

    @property
    def in_days(self) -> Interval:
        """With as many days as it has: a literal of 25 hours is a day and an hour."""
        sign = 1 if self.micros >= 0 else -1
        days, rest = divmod(abs(self.micros), calendar.MICROS_OF_DAY)
        return Interval(self.months, self.days + sign * days, sign * rest)

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros)


def interval_of(text: str) -> Interval:
    """Of a literal of one unit. Raises NotExact for others."""
    found = _LITERAL.fullmatch(text)
    if found is None or found[5] == "QUARTER":
        raise NotExact
    count = int(found[2] or found[4])
    return Interval.of(found[5], -count if found[1] or found[3] else count).in_days


def unit_of(text: str) -> str:
    """A literal's unit, in the singular; empty for what is no literal of one unit."""
    found = _LITERAL.fullmatch(text)
    return found[5] if found else ""


def later(value: Value, interval: Interval, zone: str) -> Value:
    """``value + interval``. Raises NotExact where a date would become a moment."""
    if value.type == DATE:
        if interval.micros:
            raise NotExact
        return within(column(pa.array(_shifted(within(value), interval)), DATE))
    if value.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise NotExact
    if interval.days or interval.months:
        times = column(pa.array(_shifted(local(value, zone), interval)), TIMESTAMP_NTZ)
        value = moment(times, zone) if value.type == TIMESTAMP else times
    moved = pc.add(pc.cast(value.data, pa.int64()), pa.scalar(interval.micros, pa.int64()))
    return within(Value(pc.cast(moved, arrow_type(value.type)), value.type))


def _shifted(value: Value, interval: Interval) -> Array:
    times = datetimes(value)
    day = times.astype("M8[D]")
    found: Array = calendar.add_months(day, interval.months) + interval.days + (times - day)
    return found
