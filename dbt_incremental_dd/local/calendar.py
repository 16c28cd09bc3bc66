"""Months and weeks of days, as NumPy's proleptic Gregorian calendar has them, which is Spark's. NULL is NaT."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dbt_incremental_dd.local.vectors import Array

MICROS_OF_DAY = 86_400_000_000


def add_months(days: Array, months: Array | int) -> Array:
    """The same day of another month, or its last one."""
    month = days.astype("M8[M]")
    target = month + np.asarray(months).astype("m8[M]")
    first = target.astype("M8[D]")
    found: Array = first + np.minimum(days - month.astype("M8[D]"), last_day(target) - first)
    return found


def last_day(days: Array) -> Array:
    """Of each day's month."""
    return (days.astype("M8[M]") + 1).astype("M8[D]") - 1


def months_between(start: Array, end: Array) -> Array:
    """Whole months from one moment to another, towards zero; nonsense where one is NaT."""
    first, second = start.astype("M8[D]"), end.astype("M8[D]")
    into_first, into_second = start - first, end - second
    second = second - ((second > first) & (into_second < into_first)).astype("m8[D]")
    second = second + ((second < first) & (into_second > into_first)).astype("m8[D]")
    packed = [days.astype("M8[M]").astype(np.int64) * 32 + _day_of_month(days) for days in (first, second)]
    difference = packed[1] - packed[0]
    whole: Array = np.sign(difference) * (np.abs(difference) // 32)
    return whole


def truncation(unit: str) -> Callable[[Array], Array] | None:
    """To the first day of a year, quarter, month or week, by Spark's names of them; None for other names."""
    return _TRUNCATIONS.get(unit.upper())


def _day_of_month(days: Array) -> Array:
    found: Array = (days - days.astype("M8[M]").astype("M8[D]")).astype(np.int64)
    return found


def _quarter(days: Array) -> Array:
    month = days.astype("M8[M]")
    return (month - month.astype(np.int64) % 3).astype("M8[D]")


def _week(days: Array) -> Array:
    return days - (days.astype(np.int64) + 3) % 7


_TRUNCATIONS: Mapping[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), lambda days: days.astype("M8[Y]").astype("M8[D]")),
    "QUARTER": _quarter,
    **dict.fromkeys(("MONTH", "MON", "MM"), lambda days: days.astype("M8[M]").astype("M8[D]")),
    "WEEK": _week,
}
