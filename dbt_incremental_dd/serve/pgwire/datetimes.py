"""Dates, times and intervals, as text (DateStyle ISO) and in binary. Days and microseconds count from 1970."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from dbt_incremental_dd.subscribe.calendar import civil

_DAY = 86_400_000_000
_DAYS_TO_2000 = 10_957
_FOREVER = {2**63 - 1: "infinity", -(2**63 - 1): "-infinity"}
_FOREVER_DAYS = {2**31 - 1: "infinity", -(2**31 - 1): "-infinity"}


@lru_cache(4096)
def _day(days: int) -> tuple[str, str]:
    """The date in the proleptic Gregorian calendar, and the suffix `` BC`` for years before 1."""
    year, month, day = civil(days)
    shown, suffix = (year, "") if year > 0 else (1 - year, " BC")
    return f"{shown:04d}-{month:02d}-{day:02d}", suffix


def _clock(us: int) -> str:
    """``hh:mm:ss``, with a fraction if there is one."""
    seconds, fraction = divmod(us, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def date_text(days: int) -> bytes:
    """A date as text."""
    return (_FOREVER_DAYS.get(days) or "".join(_day(days))).encode()


def date_bytes(days: int) -> bytes:
    """A date in binary: days since 2000."""
    if days in _FOREVER_DAYS:
        return struct.pack("!i", days if days > 0 else -(2**31))
    return struct.pack("!i", days - _DAYS_TO_2000)


def timestamp_text(us: int, zone: str = "") -> bytes:
    """A timestamp as text."""
    if us in _FOREVER:
        return _FOREVER[us].encode()
    days, left = divmod(us, _DAY)
    day, suffix = _day(days)
    return f"{day} {_clock(left)}{zone}{suffix}".encode()


def zoned_text(us: int) -> bytes:
    """A timestamp with time zone as text, in UTC."""
    return timestamp_text(us, "+00")


def timestamp_bytes(us: int) -> bytes:
    """A timestamp with or without time zone in binary: microseconds since 2000."""
    if us in _FOREVER:
        return struct.pack("!q", us if us > 0 else -(2**63))
    return struct.pack("!q", us - _DAYS_TO_2000 * _DAY)


def time_text(us: int) -> bytes:
    """A time of day as text."""
    return _clock(us).encode()


def interval_text(interval: Any) -> bytes:
    """Arrow's months, days and nanoseconds in Postgres' interval style."""
    sign = 1 if interval.months >= 0 else -1
    years, months = divmod(abs(interval.months), 12)
    us = interval.nanoseconds // 1000
    counted = ((sign * years, "year"), (sign * months, "mon"), (interval.days, "day"))
    parts = [f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in counted if number]
    if us or not parts:
        parts.append(("-" if us < 0 else "") + _clock(abs(us)))
    return " ".join(parts).encode()


def interval_bytes(interval: Any) -> bytes:
    """Arrow's months, days and nanoseconds in binary."""
    return struct.pack("!qii", interval.nanoseconds // 1000, interval.days, interval.months)


def date_of(days: int) -> str:
    """The text of a date in binary (days since 2000)."""
    if days in (2**31 - 1, -(2**31)):
        return "infinity" if days > 0 else "-infinity"
    return date_text(days + _DAYS_TO_2000).decode()


def timestamp_of(us: int) -> str:
    """The text of a timestamp in binary (microseconds since 2000), without time zone."""
    if us in (2**63 - 1, -(2**63)):
        return "infinity" if us > 0 else "-infinity"
    return timestamp_text(us + _DAYS_TO_2000 * _DAY).decode()
