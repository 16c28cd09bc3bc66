"""Logical time: whole milliseconds since the Unix epoch (UTC), totally ordered."""

from __future__ import annotations

import re
import time as _clock
from datetime import UTC, datetime

from dbt_incremental_dd.core.errors import ConfigError

Time = int

BEGINNING: Time = -1
"""A time before all updates: every collection is empty as of it."""

END: Time = 253_402_300_799_999
"""The last time that an ISO 8601 timestamp can express: the end of the year 9999."""

_UNITS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1000,
    "second": 1000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
    "week": 604_800_000,
}


def now() -> Time:
    """The clock's time in ms since 1970."""
    return int(_clock.time() * 1000)


def parse_time(text: str | int | float | datetime) -> Time:
    """A time (ms) from milliseconds since 1970, or an ISO 8601 date or timestamp (UTC unless it names a zone).

    Raises ConfigError if the text is none of these, before 1970 or after the year 9999.
    """
    if isinstance(text, bool):
        raise ConfigError(f"{text!r} is not a time", _TIME_HELP)
    if isinstance(text, datetime):
        moment = text if text.tzinfo else text.replace(tzinfo=UTC)
    elif isinstance(text, int | float) or re.fullmatch(r"[0-9]{9,}", str(text).strip()):
        return _within(text, text)
    else:
        try:
            moment = datetime.fromisoformat(str(text).strip())
        except ValueError:
            raise ConfigError(f"{_short(text)} is not a time", _TIME_HELP) from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _within(round(moment.timestamp() * 1000), text)


def _within(ms: str | float, text: object) -> Time:
    """Raises ConfigError if no ISO timestamp can express the time."""
    try:
        t = int(ms)
    except (ValueError, OverflowError):
        t = END + 1
    if t < 0:
        raise ConfigError(f"{_short(text)} lies before 1970-01-01", _TIME_HELP)
    if t > END:
        raise ConfigError(f"{_short(text)} lies behind the year 9999", _TIME_HELP)
    return t


def _short(text: object) -> str:
    shown = repr(text) if isinstance(text, str | float | datetime) else "the time"
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


_TIME_HELP = "Write an ISO 8601 timestamp such as 2013-06-01T00:00:00Z, or milliseconds since 1970."


def format_time(t: Time) -> str:
    """``2013-06-01 00:00:00``, with milliseconds if there are any, in UTC. After the year 9999, a number of ms."""
    if t < 0:
        return "the beginning"
    if t > END:
        return f"{t} ms" if t < 10**30 else "the end of time"
    moment = datetime.fromtimestamp(t / 1000, UTC)
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{t % 1000:03d}" if t % 1000 else text


def parse_duration(text: str | int) -> int:
    """Milliseconds of ``'1 day'``, ``'90 minutes'``, ``'36h'``, or of a number of ms. Raises ConfigError for anything
    else."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+?)s?\s*", str(text))
    unit = match and (_UNITS.get(match[2].lower()) or _UNITS.get(f"{match[2].lower()}s"))
    if not match or not unit:
        raise ConfigError(f"{text!r} is not a duration", "Write a number and a unit, such as '1 day' or '6 hours'.")
    return int(float(match[1]) * unit)
