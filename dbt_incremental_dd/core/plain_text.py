"""Plain texts: those that mean the same value to every reader. All others are left to Spark."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any

from dbt_incremental_dd.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)

Parser = Callable[[str], Any]
"""Raises ValueError for a text that is not plain."""
Moments = Callable[[datetime.datetime], datetime.datetime]
"""When clocks show a local time, in a time zone. Raises ValueError where only Spark can say that."""


class Unclear(ValueError):
    """A text is not plain, so that only Spark can parse it."""


_FIRST_YEAR = 1600
"""Calendars differ before."""
_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
_WITH_ZONE = re.compile(rf"{_DAY}[T ]{_TIME}(?:Z|[+-](?:0\d|1[0-7]):[0-5]\d)", re.ASCII)
_WITHOUT_ZONE = re.compile(rf"{_DAY}[T ]{_TIME}", re.ASCII)
_DATE = re.compile(_DAY, re.ASCII)
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,39})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
"""Every reader gives the nearest double; none of these is infinite."""
_BITS = {BYTE: 7, SHORT: 15, INTEGER: 31, LONG: 63}
_BOOLEANS = {"true": True, "false": False}


def parser_of(dtype: Type, moments: Moments | None = None) -> Parser | None:
    """The parser of a type's plain texts; None if the type has none. ``moments``: those of texts that name no time
    zone; without it, they are not plain."""
    if dtype == TIMESTAMP and moments is not None:
        return _moment(moments)
    if isinstance(dtype, Decimal):
        return _decimal(dtype)
    if dtype in _BITS:
        return _whole(_BITS[dtype])
    return _PARSERS.get(dtype)


def pattern_of(dtype: Type) -> str | None:
    """A regular expression that matches a type's plain texts, apart from the range of their values; None if there is
    none."""
    if isinstance(dtype, Decimal):
        return _decimal_pattern(dtype)
    return _WHOLE.pattern if dtype in _BITS else _PATTERNS.get(dtype)


def _match(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise Unclear(text)
    return text


def _whole(bits: int) -> Parser:
    def parse(text: str) -> int:
        value = int(_match(_WHOLE, text))
        if not -(1 << bits) <= value < 1 << bits:
            raise Unclear(text)
        return value

    return parse


def _decimal_pattern(dtype: Decimal) -> str:
    before, scale = dtype.precision - dtype.scale, dtype.scale
    fraction = rf"(?:\.\d{{1,{scale}}})?" if scale else ""
    whole = rf"(?:0|[1-9]\d{{0,{before - 1}}})" if before else "0"
    return f"-?{whole}{fraction}"


def _decimal(dtype: Decimal) -> Parser:
    pattern = re.compile(_decimal_pattern(dtype), re.ASCII)
    return lambda text: decimal.Decimal(_match(pattern, text))


def _boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise Unclear(text)
    return _BOOLEANS[text]


def _date(text: str) -> datetime.date:
    found = datetime.date.fromisoformat(_match(_DATE, text))
    if found.year < _FIRST_YEAR:
        raise Unclear(text)
    return found


def _timestamp(pattern: re.Pattern[str]) -> Callable[[str], datetime.datetime]:
    def parse(text: str) -> datetime.datetime:
        return _recent(datetime.datetime.fromisoformat(_match(pattern, text)))

    return parse


def _recent(time: datetime.datetime) -> datetime.datetime:
    if time.year < _FIRST_YEAR:
        raise Unclear(time.isoformat())
    return time


def _moment(moments: Moments) -> Parser:
    """A day alone is its midnight."""

    def parse(text: str) -> datetime.datetime:
        if _WITHOUT_ZONE.fullmatch(text) or _DATE.fullmatch(text):
            return moments(_recent(datetime.datetime.fromisoformat(text)))
        return with_zone(text)

    with_zone = _timestamp(_WITH_ZONE)
    return parse


_PATTERNS: Mapping[Type, str] = {
    BOOLEAN: "|".join(_BOOLEANS),
    DOUBLE: _NUMBER.pattern,
    DATE: _DATE.pattern,
    TIMESTAMP_NTZ: _WITHOUT_ZONE.pattern,
}
_PARSERS: Mapping[Type, Parser] = {
    STRING: str,
    BOOLEAN: _boolean,
    DOUBLE: lambda text: float(_match(_NUMBER, text)),
    DATE: _date,
    TIMESTAMP: _timestamp(_WITH_ZONE),
    TIMESTAMP_NTZ: _timestamp(_WITHOUT_ZONE),
}
