"""Thrift's compact protocol, as far as Parquet's footers and page indexes need it, without their definitions.

Source: apache/thrift, doc/specs/thrift-compact-protocol.md. A struct is a mapping from field numbers to values, which
the caller interprets. Values keep their types, so that they can be written again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Fields = dict[int, Any]
"""A struct. Integers are ``Number``, lists are ``Items``; other values are bool, float, bytes, ``Fields`` or
``Encoded``."""

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET = 1, 2, 3, 7, 8, 9, 10
I32, I64, STRUCT = 5, 6, 12


class Number(int):
    """An integer with its Thrift type: byte, I16, ``I32`` or ``I64``."""

    kind: int

    def __new__(cls, value: int, kind: int = I32) -> Number:
        made = super().__new__(cls, value)
        made.kind = kind
        return made


@dataclass(frozen=True)
class Items:
    """A list's values and their type."""

    kind: int
    values: list[Any]


@dataclass(frozen=True)
class Encoded:
    """A struct that is encoded already."""

    data: bytes


def decode(data: bytes, start: int = 0) -> tuple[Fields, int]:
    """A struct, and the position after it. Raises ValueError or IndexError if the bytes are malformed."""
    return _CompactReader(data, start).read()


def encode(fields: Fields) -> bytes:
    """A struct, encoded."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def with_longs(start: bytes, last: int, numbers: Sequence[tuple[int, npt.NDArray[np.int64]]]) -> list[bytes]:
    """Encoded structs that are the last fields of others, whose ends follow: the bytes of their first fields, the last
    of which has the number ``last``, and further I64 fields, whose values are at least 0 and below 2^34; one for each
    row of the values."""
    count = len(numbers[0][1])
    parts = [np.broadcast_to(np.frombuffer(start, np.uint8), (count, len(start)))]
    for field, values in numbers:
        parts.append(np.full((count, 1), (field - last) << 4 | I64, np.uint8))
        parts.append(_long_varints(values << 1))
        last = field
    encoded = np.hstack([*parts, np.zeros((count, 2), np.uint8)])
    data, width = encoded.tobytes(), encoded.shape[1]
    return [data[at : at + width] for at in range(0, len(data), width)]


def _long_varints(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Varints of five bytes each: one may be longer than its value needs."""
    bits = (values[:, None] >> np.array([0, 7, 14, 21, 28])) & 0x7F
    bits[:, :-1] |= 0x80
    return np.asarray(bits, np.uint8)


def decode_numbers(data: bytes, heads: bytes) -> npt.NDArray[np.int64] | None:
    """A struct's first field, a list of structs of integers, as an array with a row for each struct; like ``decode``,
    but vectorized. ``heads``: the field headers before the numbers. Returns None if the structs have other fields."""
    width, size, at = 2 * len(heads) + 1, data[1] >> 4, 2
    if size == 15:
        size = 0
        for shift in range(0, 35, 7):
            size |= (data[at] & 0x7F) << shift
            at += 1
            if data[at - 1] < 0x80:
                break
    raw = np.frombuffer(data, np.uint8)[at:]
    ends = np.flatnonzero(raw < 0x80)[: width * size]
    if len(ends) < width * size or not size:
        return None
    starts = np.r_[0, ends[:-1] + 1]
    raw = raw[: ends[-1] + 1].astype(np.int64)
    shifts = 7 * (np.arange(len(raw)) - np.repeat(starts, ends - starts + 1))
    found = np.add.reduceat((raw & 0x7F) << shifts, starts).reshape(size, width)
    if (found[:, 0:-1:2] != list(heads)).any() or found[:, -1].any():
        return None
    numbers = found[:, 1::2]
    return (numbers >> 1) ^ -(numbers & 1)


class _CompactReader:
    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._at = position

    def read(self) -> tuple[Fields, int]:
        return self._struct(), self._at

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _struct(self) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self._data[self._at]:
            self._at += 1
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 0x0F
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        self._at += 1
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (4, I32, I64):
            return Number(self._zigzag(), kind)
        if kind == _BINARY:
            size = self._varint()
            self._at += size
            return self._data[self._at - size : self._at]
        if kind == STRUCT:
            return self._struct()
        if kind in (_LIST, _SET):
            return self._items()
        if kind in (_BYTE, _TRUE, _FALSE):
            self._at += 1
            byte = self._data[self._at - 1]
            return Number(byte, kind) if kind == _BYTE else byte == _TRUE
        if kind == _DOUBLE:
            self._at += 8
            return struct.unpack_from("<d", self._data, self._at - 8)[0]
        raise ValueError(f"no type {kind} in Thrift's compact protocol that Parquet uses")

    def _items(self) -> Items:
        head = self._data[self._at]
        self._at += 1
        size = head >> 4
        size = self._varint() if size == 15 else size
        return Items(head & 0x0F, [self._value(head & 0x0F) for _ in range(size)])


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, fields: Fields) -> None:
    last = 0
    for number, value in sorted(fields.items()):
        kind = _kind(value)
        if number - last > 15:
            out.append(kind)
            _write_varint(out, number << 1)
        else:
            out.append((number - last) << 4 | kind)
        last = number
        if not isinstance(value, bool):
            _write_value(out, value)
    out.append(0)


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, Number):
        return value.kind
    kinds = {bytes: _BINARY, dict: STRUCT, Encoded: STRUCT, Items: _LIST, float: _DOUBLE}
    return kinds[type(value)]


def _write_value(out: bytearray, value: Any) -> None:
    if isinstance(value, bool):
        out.append(_TRUE if value else _FALSE)
    elif isinstance(value, Number):
        if value.kind == _BYTE:
            out.append(value)
        else:
            _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
    elif isinstance(value, Encoded):
        out += value.data
    elif isinstance(value, bytes):
        _write_varint(out, len(value))
        out += value
    elif isinstance(value, Items):
        _write_items(out, value)
    elif isinstance(value, float):
        out += struct.pack("<d", value)
    else:
        _write_struct(out, value)


def _write_items(out: bytearray, items: Items) -> None:
    size = len(items.values)
    out.append(min(size, 15) << 4 | items.kind)
    if size >= 15:
        _write_varint(out, size)
    for value in items.values:
        _write_value(out, value)
