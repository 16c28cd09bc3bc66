"""Dates and timestamps of any year as text: Arrow's and DuckDB's ranges exceed Python's."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@lru_cache(4096)
def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day in the proleptic Gregorian calendar, from days since 1970. Year 0 precedes year 1."""
    # The calendar repeats every 400 years, which are counted from 1 March 0000.
    era, left = divmod(days + 719_468, 146_097)
    of_era = (left - left // 1460 + left // 36_524 - left // 146_096) // 365
    of_year = left - (365 * of_era + of_era // 4 - of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def iso_text(value: pa.Scalar) -> str:
    """A date or timestamp in ISO 8601, or DuckDB's ``infinity``."""
    whole, kind = value.value, value.type
    if abs(whole) == 2 ** (31 if kind == pa.date32() else 63) - 1:
        return "infinity" if whole > 0 else "-infinity"
    if pa.types.is_date(kind):
        return _date(whole if kind == pa.date32() else whole // (_DAY * 1000))
    per_second = _PER_SECOND[kind.unit]
    days, left = divmod(whole, _DAY * per_second)
    seconds, fraction = divmod(left, per_second)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    digits = f".{fraction * 10**6 // per_second:06d}" if fraction else ""
    return f"{_date(days)}T{clock}{digits}{'Z' if kind.tz else ''}"


def _date(days: int) -> str:
    year, month, day = civil(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
    return f"{shown}-{month:02d}-{day:02d}"
