"""MySQL's binary JSON as the text that a SELECT has for it.

How it lies is told by MySQL's sources ("json_binary.h"), and how it is shown by "json_dom.cc" and "dtoa.cc". Numbers
are little-endian; what lies behind an object or an array is found by its offset from where that begins.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal

from dbt_incremental_dd.sources.connectors.mysql import temporal
from dbt_incremental_dd.sources.connectors.mysql.binlog import Malformed
from dbt_incremental_dd.sources.connectors.mysql.packed_decimal import packed_decimal

_LARGE = (1, 3)
"""Objects and arrays with offsets of four bytes, not two."""
_LITERALS = ("null", "true", "false")
_NUMBERS = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q"}
_INLINE = {False: (4, 5, 6), True: (4, 5, 6, 7, 8)}
"""What lies in the place of its offset; by whether those are of four bytes."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_MOST_PLAIN = 15
"""Places before the point, or zeros after it, up to which a number has no exponent."""


def text(data: bytes) -> bytes:
    """A value's text in UTF-8. Raises Malformed, IndexError, struct.error or UnicodeDecodeError for bytes that are no
    value."""
    return (_value(data[0], data, 1) if data else "null").encode()  # of nothing the server makes null, too


def _value(kind: int, data: bytes, at: int) -> str:
    if kind in (0, 1, 2, 3):
        return _container(kind, data, at)
    if kind == 4:
        return _LITERALS[data[at]]
    if kind in _NUMBERS:
        return str(struct.unpack_from(_NUMBERS[kind], data, at)[0])
    if kind == 11:
        return _double(struct.unpack_from("<d", data, at)[0])
    if kind == 12:
        return _quoted(_sized(data, at).decode())
    if kind == 15:
        return _opaque(data[at], _sized(data, at + 1))
    raise Malformed(f"binary JSON has no type {kind}")


def _container(kind: int, data: bytes, begin: int) -> str:
    is_large, is_object = kind in _LARGE, kind < 2
    width = 4 if is_large else 2

    def number(at: int, size: int = width) -> int:
        if at + size > len(data):
            raise Malformed("binary JSON ends early")
        return int.from_bytes(data[at : at + size], "little")

    count = number(begin)
    first_key = begin + 2 * width
    first = first_key + (count * (width + 2) if is_object else 0)

    def values() -> Iterator[str]:
        for at in range(first, first + count * (width + 1), width + 1):
            kind = data[at]
            if kind in _INLINE[is_large]:
                yield _value(kind, data, at + 1)
            else:
                yield _value(kind, data, begin + number(at + 1))

    def keys() -> Iterator[str]:
        for at in range(first_key, first, width + 2):
            place = begin + number(at)
            yield _quoted(data[place : place + number(at + width, 2)].decode())

    if not is_object:
        return "[" + ", ".join(values()) + "]"
    return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys(), values(), strict=True)) + "}"


def _sized(data: bytes, at: int) -> bytes:
    """Bytes after their length, which has seven bits a byte, the last of which is below 128."""
    size = shift = 0
    while True:
        size |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            break
    if at + size > len(data):
        raise Malformed("binary JSON ends early")
    return data[at : at + size]


def _quoted(found: str) -> str:
    return '"' + _ESCAPED.sub(lambda one: _ESCAPES.get(one[0]) or f"\\u{ord(one[0]):04x}", found) + '"'


def _double(number: float) -> str:
    """The shortest digits, as dtoa.cc lays them out: with an exponent where the point is far from them."""
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    found = "".join(map(str, digits)).rstrip("0")
    minus = "-" if sign else ""
    if not found:
        return minus + "0.0"
    point = len(digits) + exponent  # the number is 0.DIGITS times ten to that
    if not -_MOST_PLAIN < point <= _MOST_PLAIN:
        return minus + found[0] + ("." + found[1:] if len(found) > 1 else "") + f"e{point - 1}"
    if point <= 0:
        return minus + "0." + "0" * -point + found
    return minus + found[:point].ljust(point, "0") + "." + (found[point:] or "0")


def _date(data: bytes) -> str:
    return _quoted(temporal.packed_datetime(int.from_bytes(data, "little", signed=True))[:10])


def _datetime(data: bytes) -> str:
    return _quoted(temporal.packed_datetime(int.from_bytes(data, "little", signed=True)))


def _time(data: bytes) -> str:
    return _quoted(temporal.packed_time(int.from_bytes(data, "little", signed=True)))


def _decimal(data: bytes) -> str:
    return packed_decimal(data[0], data[1])(data, 2)[0].decode()


_OPAQUE: dict[int, Callable[[bytes], str]] = {7: _datetime, 10: _date, 11: _time, 12: _datetime, 246: _decimal}


def _opaque(kind: int, data: bytes) -> str:
    """A value of SQL's that JSON has no type for: of most types as its bytes, in lines of 76 characters."""
    if kind in _OPAQUE:
        return _OPAQUE[kind](data)
    return _quoted(f"base64:type{kind}:{base64.encodebytes(data).decode().rstrip()}")
