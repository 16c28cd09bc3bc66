"""Digests of texts and bytes, and their spellings."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable

import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BINARY, INTEGERS, LONG, STRING
from dbt_incremental_dd.local.functions.function import Functions, fixed
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import by_row, constant_int, require, require_all

_SHA2 = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
_BASE64_LINE = 57
"""Bytes of which no version breaks the text into lines."""


def _bytes(value: Value) -> Value:
    """A text as UTF-8."""
    require(value, STRING, BINARY)
    return Value(pc.cast(value.data, "binary"), BINARY)


def _digest(name: str) -> Callable[[Value], Value]:
    def digest(value: Value) -> Value:
        return by_row(lambda data: hashlib.new(name, data, usedforsecurity=False).hexdigest(), STRING, _bytes(value))

    return digest


def _sha2(value: Value, bits: Value) -> Value:
    name = _SHA2.get(constant_int(bits))
    if name is None:
        raise NotExact
    return _digest(name)(value)


def _crc32(value: Value) -> Value:
    return by_row(zlib.crc32, LONG, _bytes(value))


def _hex(value: Value) -> Value:
    if value.type in INTEGERS:
        return by_row(lambda number: f"{number & 0xFFFF_FFFF_FFFF_FFFF:X}", STRING, value)
    return by_row(lambda data: data.hex().upper(), STRING, _bytes(value))


def _base64(value: Value) -> Value:
    data = _bytes(value)
    require_all(pc.less_equal(pc.binary_length(data.data), _BASE64_LINE))
    return by_row(lambda data: base64.b64encode(data).decode(), STRING, data)


FUNCTIONS: Functions = {
    "base64": fixed(_base64, 1),
    "crc32": fixed(_crc32, 1),
    "hex": fixed(_hex, 1),
    "md5": fixed(_digest("md5"), 1),
    "sha": fixed(_digest("sha1"), 1),
    "sha1": fixed(_digest("sha1"), 1),
    "sha2": fixed(_sha2, 2),
}
