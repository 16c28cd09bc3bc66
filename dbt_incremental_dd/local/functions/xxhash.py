"""``xxhash64``, as Spark computes it: XXH64 of each argument in turn, with the hash so far as its seed."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import (
    BINARY,
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
    VOID,
    Decimal,
    Type,
)
from dbt_incremental_dd.local.decimals import EXACT
from dbt_incremental_dd.local.functions.function import MANY, Function, Functions
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import column, repeated, rows_of

_SEED = 42
_MOST_ROWS = 20_000
"""Of more, Spark is quicker."""
_DIGITS_OF_LONG = 18
_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _mixed(value: int) -> int:
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def of_bytes(data: bytes, seed: int) -> int:
    """XXH64, from 0 to 2^64 - 1."""
    start, rest = _of_blocks(data, seed)
    value = (start + len(data)) & _MASK
    while len(rest) >= 8:
        value = (_rotated(value ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * _P1 + _P4) & _MASK
        rest = rest[8:]
    if len(rest) >= 4:
        word = int.from_bytes(rest[:4], "little")
        value = (_rotated(value ^ word * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        value = _rotated(value ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    return _mixed(value)


def _of_blocks(data: bytes, seed: int) -> tuple[int, bytes]:
    """What all blocks of 32 bytes come to, and the bytes after them."""
    whole = len(data) // 32 * 32
    if not whole:
        return seed + _P5, data
    lanes = [(seed + offset) & _MASK for offset in (_P1 + _P2, _P2, 0, -_P1)]
    for block in struct.iter_unpack("<4Q", data[:whole]):
        lanes = [_round(lane, word) for lane, word in zip(lanes, block, strict=True)]
    value = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    return value, data[whole:]


def _whole(form: str) -> Callable[[int], bytes]:
    return struct.Struct(form).pack


def _double(number: float) -> bytes:
    """Zeros are one value, and so is NaN."""
    return struct.pack("<d", math.nan if math.isnan(number) else number + 0.0)


def _large(number: int) -> bytes:
    """As Java spells it: as few bytes as hold the sign."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


_AS_INTEGER = {BYTE: pa.int32(), SHORT: pa.int32(), INTEGER: pa.int32(), BOOLEAN: pa.int32(), DATE: pa.int32()}
_AS_LONG = {LONG: pa.int64(), TIMESTAMP: pa.int64(), TIMESTAMP_NTZ: pa.int64()}


def parts_of(data: pa.ChunkedArray, type: Type) -> Iterator[bytes | None]:
    """The bytes of each value that Spark hashes; None for NULL. Raises NotExact."""
    make: Callable[[Any], bytes]
    if isinstance(type, Decimal):
        scale = type.scale
        make = _whole("<q") if type.precision <= _DIGITS_OF_LONG else _large
        return (None if v is None else make(int(v.scaleb(scale, EXACT))) for v in data.to_pylist())
    if type in _AS_INTEGER:
        data, make = pc.cast(data, _AS_INTEGER[type]), _whole("<i")
    elif type in _AS_LONG:
        data, make = pc.cast(data, _AS_LONG[type]), _whole("<q")
    elif type == DOUBLE:
        make = _double
    elif type in (STRING, BINARY, VOID):
        data, make = pc.cast(data, pa.binary()), bytes
    else:
        raise NotExact(f"a hash of a {type}")
    return (None if v is None else make(v) for v in data.to_pylist())


def _xxhash64(*values: Value) -> Value:
    signed = (value - (1 << 64) if value >> 63 else value for value in hashes_of(*values))
    return column(pa.array(signed, pa.int64()), LONG)


def hashes_of(*values: Value) -> list[int]:
    """Each row's hash, from 0 to 2^64 - 1; NULL leaves it as it is. Raises NotExact."""
    rows = rows_of(*values)
    if rows > _MOST_ROWS:
        raise NotExact
    hashes = [_SEED] * rows
    for value in values:
        parts = parts_of(repeated(value, rows), value.type)
        hashes = [seed if part is None else of_bytes(part, seed) for seed, part in zip(hashes, parts, strict=True)]
    return hashes


FUNCTIONS: Functions = {"xxhash64": Function(_xxhash64, 1, MANY)}
