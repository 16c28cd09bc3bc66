"""Hashes of rows, as Spark chains them: of each argument in turn, with the hash so far as its seed."""

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
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import repeated, rows_of

SEED = 42
"""Of the first argument."""
_MOST_ROWS = 20_000
"""Of more, Spark is quicker."""
_DIGITS_OF_LONG = 18


def hashes(of_bytes: Callable[[bytes, int], int], *values: Value) -> list[int]:
    """Each row's hash; NULL leaves it as it is. ``of_bytes`` takes a value's bytes and a seed. Raises NotExact."""
    rows = rows_of(*values)
    if rows > _MOST_ROWS:
        raise NotExact
    found = [SEED] * rows
    for value in values:
        parts = _parts(repeated(value, rows), value.type)
        found = [seed if part is None else of_bytes(part, seed) for seed, part in zip(found, parts, strict=True)]
    return found


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


def _parts(data: pa.ChunkedArray, type: Type) -> Iterator[bytes | None]:
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
