"""``hash``: Murmur3 of each argument in turn.

Source: Austin Appleby, MurmurHash3_x86_32; bytes after the last word of four are mixed one by one, as signed numbers.
"""

from __future__ import annotations

import pyarrow as pa

from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.local.functions.function import MANY, Function, Functions
from dbt_incremental_dd.local.functions.hash_chain import hashes
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.local.vectors import column

_MASK = 0xFFFF_FFFF


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def of_bytes(data: bytes, seed: int) -> int:
    """Murmur3, as a signed number of 32 bits."""
    value, whole = seed & _MASK, len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    words += [byte - 256 if byte > 127 else byte for byte in data[whole:]]
    for word in words:
        mixed = _rotated((word & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
        value = (_rotated(value ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    value ^= value >> 16
    return value - (1 << 32) if value >> 31 else value


def _hash(*values: Value) -> Value:
    return column(pa.array(hashes(of_bytes, *values), pa.int32()), INTEGER)


FUNCTIONS: Functions = {"hash": Function(_hash, 1, MANY)}
