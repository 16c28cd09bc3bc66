"""``xxhash64``: XXH64 of each argument in turn."""

from __future__ import annotations

import struct

import pyarrow as pa

from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.local.functions.function import MANY, Function, Functions
from dbt_incremental_dd.local.functions.hash_chain import hashes
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.local.vectors import column

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


def _xxhash64(*values: Value) -> Value:
    signed = (value - (1 << 64) if value >> 63 else value for value in hashes(of_bytes, *values))
    return column(pa.array(signed, pa.int64()), LONG)


FUNCTIONS: Functions = {"xxhash64": Function(_xxhash64, 1, MANY)}
