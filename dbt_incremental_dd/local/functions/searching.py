"""Functions that measure texts, and look for one in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, INTEGER, STRING
from dbt_incremental_dd.local.functions.function import Function, Functions, fixed
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.local.vectors import by_row, constant_int, require


def _length(value: Value) -> Value:
    """Characters."""
    require(value, STRING)
    return Value(pc.utf8_length(value.data), INTEGER)


def _bytes(value: Value) -> Value:
    require(value, STRING)
    return Value(pc.binary_length(value.data), INTEGER)


def _bits(value: Value) -> Value:
    return Value(pc.multiply(_bytes(value).data, pa.scalar(8, pa.int32())), INTEGER)


def _test(quickly: Callable[[Any, str], Any], by_one: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    def tested(value: Value, wanted: Value) -> Value:
        require(value, STRING)
        require(wanted, STRING)
        text = wanted.data.as_py() if isinstance(wanted.data, pa.Scalar) else None
        if text is None or isinstance(value.data, pa.Scalar):
            return by_row(by_one, BOOLEAN, value, wanted)
        return Value(quickly(value.data, text), BOOLEAN)

    return tested


def find(value: Value, wanted: Value) -> Value:
    """Where a text first stands in another, counted from 1; 0 where it does not."""
    require(value, STRING)
    require(wanted, STRING)
    return by_row(lambda text, part: text.find(part) + 1, INTEGER, value, wanted)


def locate(wanted: Value, value: Value, start: Value | None = None) -> Value:
    """The same from a constant place on; that is one that a text has."""
    if start is None or constant_int(start) == 1:
        return find(value, wanted)
    require(value, STRING)
    require(wanted, STRING)
    return by_row(_locator(constant_int(start)), INTEGER, wanted, value)


def _locator(start: int) -> Callable[[str, str], int]:
    def located(part: str, text: str) -> int:
        if start < 1 or not part or start > len(text):
            raise ValueError(start)
        return text.find(part, start - 1) + 1

    return located


def _first_code(value: Value) -> Value:
    require(value, STRING)
    return by_row(lambda text: ord(text[0]) if text else 0, INTEGER, value)


FUNCTIONS: Functions = {
    "ascii": fixed(_first_code, 1),
    "bit_length": fixed(_bits, 1),
    "char_length": fixed(_length, 1),
    "character_length": fixed(_length, 1),
    "contains": fixed(_test(pc.match_substring, lambda text, part: part in text), 2),
    "endswith": fixed(_test(pc.ends_with, str.endswith), 2),
    "instr": fixed(find, 2),
    "len": fixed(_length, 1),
    "length": fixed(_length, 1),
    "locate": Function(locate, 2, 3),
    "octet_length": fixed(_bytes, 1),
    "position": Function(locate, 2, 3),
    "startswith": fixed(_test(pc.starts_with, str.startswith), 2),
}
