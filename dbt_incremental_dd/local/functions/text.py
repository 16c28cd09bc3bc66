"""Functions that make texts of texts. Characters are code points, as in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BINARY, BYTE, INTEGER, INTEGERS, LONG, SHORT, STRING
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.functions.function import MANY, Function, Functions, fixed, zoned
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import by_row, constant_int, constant_text, require, require_all, require_ascii

_MOST_CHARACTERS = 10_000
"""That a text is repeated or padded to."""
_WORDS = re.compile(r"[a-zA-Z ]*", re.ASCII)


def of_text(change: Callable[[Any], Any]) -> Callable[[Value], Value]:
    """A change of one text that is the same for all characters."""

    def changed(value: Value) -> Value:
        require(value, STRING)
        return Value(change(value.data), STRING)

    return changed


def _of_ascii(change: Callable[[Any], Any]) -> Callable[[Value], Value]:
    def changed(value: Value) -> Value:
        require(value, STRING)
        require_ascii(value)
        return Value(change(value.data), STRING)

    return changed


def trimmed(trim: Callable[..., Any]) -> Callable[..., Value]:
    """Of the characters of a constant text; of spaces, and of no others, without one."""

    def changed(value: Value, characters: Value | None = None) -> Value:
        require(value, STRING)
        wanted = " " if characters is None else constant_text(characters)
        return Value(trim(value.data, wanted) if wanted else value.data, STRING)

    return changed


def _substring(value: Value, start: Value, length: Value | None = None) -> Value:
    """From a constant place on, counted from 1, or from the end."""
    require(value, STRING)
    require(start, INTEGER)
    first, count = constant_int(start), None if length is None else constant_int(length)
    if count is not None and count < 0:
        raise NotExact
    if first < 0:
        if count is not None:
            require_all(pc.greater_equal(pc.utf8_length(value.data), -first))
        end = None if count is None or first + count >= 0 else first + count
        return Value(pc.utf8_slice_codeunits(value.data, first, end), STRING)
    begin = max(first - 1, 0)
    # Before the first character there is nothing, but it is counted.
    end = None if count is None else max(begin, (first - 1 if first else 0) + count)
    return Value(pc.utf8_slice_codeunits(value.data, begin, end), STRING)


def _left(value: Value, length: Value) -> Value:
    require(value, STRING)
    return Value(pc.utf8_slice_codeunits(value.data, 0, max(constant_int(length), 0)), STRING)


def _right(value: Value, length: Value) -> Value:
    require(value, STRING)
    count = constant_int(length)
    if count <= 0:
        return _left(value, length)
    return Value(pc.utf8_slice_codeunits(value.data, -count, None), STRING)


def _padded(pad: Callable[..., Any]) -> Callable[..., Value]:
    """To a constant length, which longer texts are cut to; with one character."""

    def padded(value: Value, length: Value, padding: Value | None = None) -> Value:
        require(value, STRING)
        count, character = constant_int(length), " " if padding is None else constant_text(padding)
        if len(character) != 1 or not character.isascii() or count > _MOST_CHARACTERS:
            raise NotExact
        width = max(count, 0)
        return Value(pad(pc.utf8_slice_codeunits(value.data, 0, width), width, character), STRING)

    return padded


def _concat(zone: str, *values: Value) -> Value:
    """NULL, if one of them is."""
    parts = (_as_text(value, zone).data for value in values)
    return Value(pc.binary_join_element_wise(*parts, "", null_handling="emit_null"), STRING)


def _as_text(value: Value, zone: str) -> Value:
    """Values of any type but bytes, which Spark leaves as they are."""
    if value.type == BINARY:
        raise NotExact
    return cast(value, STRING, zone)


def _concat_ws(zone: str, separator: Value, *values: Value) -> Value:
    """Of those that are not NULL."""
    values = tuple(_as_text(value, zone) for value in values)
    between = constant_text(separator)
    # Arrow itself passes over the rows of which all are NULL.
    parts = [pc.coalesce(pc.binary_join_element_wise(between, value.data, ""), "") for value in values]
    joined = pc.binary_join_element_wise(*parts, "")
    return Value(pc.utf8_slice_codeunits(joined, len(between), None), STRING)


def _repeat(value: Value, times: Value) -> Value:
    require(value, STRING)
    count = max(constant_int(times), 0)
    require_all(pc.less_equal(pc.multiply(pc.utf8_length(value.data), count), _MOST_CHARACTERS))
    return Value(pc.binary_repeat(value.data, count), STRING)


def _replace(value: Value, search: Value, replacement: Value | None = None) -> Value:
    require(value, STRING)
    wanted, by = constant_text(search), "" if replacement is None else constant_text(replacement)
    return Value(pc.replace_substring(value.data, wanted, by) if wanted else value.data, STRING)


def _translate(value: Value, characters: Value, by: Value) -> Value:
    """Each of some characters by the one in its place; one without is removed."""
    require(value, STRING)
    wanted, others = constant_text(characters), constant_text(by)
    if not wanted.isascii() or not others.isascii():
        raise NotExact
    table: dict[int, str | None] = {}
    for place, character in enumerate(wanted):
        table.setdefault(ord(character), others[place] if place < len(others) else None)
    return by_row(lambda text: text.translate(table), STRING, value)


def _capitals(value: Value) -> Value:
    """Of words of ASCII letters: others are told apart by the version of Unicode."""
    require(value, STRING)
    return by_row(_with_capitals, STRING, value)


def _with_capitals(text: str) -> str:
    if not _WORDS.fullmatch(text):
        raise ValueError(text)
    return " ".join(word[:1].upper() + word[1:].lower() for word in text.split(" "))


def _split_part(value: Value, separator: Value, place: Value) -> Value:
    """The part at a constant place, counted from 1; nothing behind the last one."""
    require(value, STRING)
    number, between = constant_int(place), constant_text(separator)
    if number < 1 or not between:
        raise NotExact
    parts = pc.split_pattern(value.data, between)
    return Value(pc.binary_join(pc.list_slice(parts, number - 1, number), ""), STRING)


def _substring_index(value: Value, separator: Value, count: Value) -> Value:
    """What comes before a separator, the first or a later one; or, counted from the end, what comes behind it."""
    require(value, STRING)
    number, between = constant_int(count), constant_text(separator)
    if not number or not between or (number < 0 and len(between) > 1):  # longer ones may overlap
        raise NotExact
    if number < 0:
        return by_row(lambda text: between.join(text.split(between)[number:]), STRING, value)
    parts = pc.list_slice(pc.split_pattern(value.data, between), 0, number)
    return Value(pc.binary_join(parts, between), STRING)


def _character(code: Value) -> Value:
    require(code, BYTE, SHORT, INTEGER, LONG)
    return by_row(lambda number: "" if number < 0 else chr(number & 0xFF), STRING, code)


def _space(count: Value) -> Value:
    require(count, *INTEGERS)
    require_all(pc.less_equal(count.data, _MOST_CHARACTERS))
    return by_row(lambda number: " " * max(number, 0), STRING, count)


FUNCTIONS: Functions = {
    "btrim": Function(trimmed(pc.utf8_trim), 1, 2),
    "btrim characters": fixed(trimmed(pc.utf8_trim), 2),
    "char": fixed(_character, 1),
    "chr": fixed(_character, 1),
    "concat": zoned(_concat, 1, MANY),
    "concat_ws": zoned(_concat_ws, 2, MANY),
    "initcap": fixed(_capitals, 1),
    "lcase": fixed(_of_ascii(pc.ascii_lower), 1),
    "left": fixed(_left, 2),
    "lower": fixed(_of_ascii(pc.ascii_lower), 1),
    "lpad": Function(_padded(pc.utf8_lpad), 2, 3),
    "ltrim": fixed(trimmed(pc.utf8_ltrim), 1),
    "ltrim characters": fixed(trimmed(pc.utf8_ltrim), 2),
    "repeat": fixed(_repeat, 2),
    "replace": Function(_replace, 2, 3),
    "reverse": fixed(of_text(pc.utf8_reverse), 1),
    "right": fixed(_right, 2),
    "rpad": Function(_padded(pc.utf8_rpad), 2, 3),
    "rtrim": fixed(trimmed(pc.utf8_rtrim), 1),
    "rtrim characters": fixed(trimmed(pc.utf8_rtrim), 2),
    "space": fixed(_space, 1),
    "split_part": fixed(_split_part, 3),
    "substring": Function(_substring, 2, 3),
    "substring_index": fixed(_substring_index, 3),
    "translate": fixed(_translate, 3),
    "trim": fixed(trimmed(pc.utf8_trim), 1),
    "ucase": fixed(_of_ascii(pc.ascii_upper), 1),
    "upper": fixed(_of_ascii(pc.ascii_upper), 1),
}
