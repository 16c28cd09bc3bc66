"""Dates and times of the log as the text that a SELECT has for them, zero dates and odd ones included."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime as moment
from datetime import timedelta

Read = Callable[[bytes, int], tuple[bytes, int]]

_EPOCH = moment(1970, 1, 1)


def date(data: bytes, at: int) -> tuple[bytes, int]:
    """Five bits of day, four of month, the year."""
    found = int.from_bytes(data[at : at + 3], "little")
    return b"%04d-%02d-%02d" % (found >> 9, found >> 5 & 15, found & 31), at + 3


def year(data: bytes, at: int) -> tuple[bytes, int]:
    """Years since 1900; 0 is the year 0."""
    found = data[at]
    return b"%04d" % (found + 1900 if found else 0), at + 1


def datetime(digits: int) -> Read:
    """``digits`` of a second's fraction."""
    size = (digits + 1) // 2

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        text = _seconds(int.from_bytes(data[at : at + 5], "big") - (1 << 39))
        return text + _fraction(int.from_bytes(data[at + 5 : at + 5 + size], "big"), digits), at + 5 + size

    return read


def timestamp(digits: int) -> Read:
    """Seconds since 1970, in UTC; 0 is no time."""
    size = (digits + 1) // 2

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        seconds = int.from_bytes(data[at : at + 4], "big")
        part = int.from_bytes(data[at + 4 : at + 4 + size], "big")
        text = b"0000-00-00 00:00:00"
        if seconds or part:
            text = (_EPOCH + timedelta(seconds=seconds)).isoformat(" ").encode()
        return text + _fraction(part, digits), at + 4 + size

    return read


def time(digits: int) -> Read:
    """With a sign, up to 838 hours."""
    size = (digits + 1) // 2

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        found = int.from_bytes(data[at : at + 3 + size], "big") - (1 << 23 + 8 * size)
        return _clock(found, 8 * size, digits), at + 3 + size

    return read


def packed_datetime(number: int) -> str:
    """A date and time in one number, as JSON has it: seconds above, microseconds in the lower 24 bits."""
    return (_seconds(number >> 24) + _fraction(number & 0xFFFFFF, 6)).decode()


def packed_time(number: int) -> str:
    """A time in one number, in the same way."""
    return _clock(number, 24, 6).decode()


def _seconds(found: int) -> bytes:
    years, months = divmod(found >> 22, 13)
    day = b"%04d-%02d-%02d " % (years, months, found >> 17 & 31)
    return day + b"%02d:%02d:%02d" % (found >> 12 & 31, found >> 6 & 63, found & 63)


def _clock(found: int, bits: int, digits: int) -> bytes:
    """``bits``: of the fraction."""
    sign, found = (b"-", -found) if found < 0 else (b"", found)
    clock, part = found >> bits, found & (1 << bits) - 1
    text = b"%02d:%02d:%02d" % (clock >> 12 & 1023, clock >> 6 & 63, clock & 63)
    return sign + text + _fraction(part, digits)


def _fraction(part: int, digits: int) -> bytes:
    """Stored in pairs of digits."""
    if not digits:
        return b""
    return b"." + (b"%0*d" % (digits + digits % 2, part))[:digits]
