"""Functions of regular expressions, and LIKE. Patterns are constants."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import BOOLEAN, INTEGER, STRING
from dbt_incremental_dd.local import regular
from dbt_incremental_dd.local.functions.function import Function, Functions, fixed
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import by_row, constant_int, constant_text, require, require_all, require_ascii


def like(value: Value, pattern: Value, escape: str = "\\") -> Value:
    """``value LIKE pattern``: ``%`` is any characters, ``_`` any one."""
    require(value, STRING)
    wanted = _like_pattern(constant_text(pattern), escape)
    if isinstance(value.data, pa.Scalar):
        raise NotExact
    return Value(pc.match_substring_regex(value.data, f"(?s)^{wanted}\\z"), BOOLEAN)


def ilike(value: Value, pattern: Value, escape: str = "\\") -> Value:
    """The same without regard to the case of ASCII letters; of others it depends on the version of Unicode."""
    require(value, STRING)
    require_ascii(value)
    text = constant_text(pattern)
    if not text.isascii():
        raise NotExact
    lowered = Value(pc.ascii_lower(value.data), STRING)
    return like(lowered, Value(pa.scalar(text.lower(), pa.string()), STRING), escape)


def _like_pattern(text: str, escape: str) -> str:
    wanted, characters = "", iter(text)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("_", "%", escape):
                raise NotExact
            wanted += re.escape(following)
        else:
            wanted += {"%": ".*", "_": "."}.get(character) or re.escape(character)
    return wanted


def _pattern(value: Value, pattern: Value) -> re.Pattern[str]:
    require(value, STRING)
    text = constant_text(pattern)
    found = regular.compiled(text)
    if regular.has_ends(text):
        require_all(pc.invert(pc.match_substring_regex(value.data, f"[{regular.LINE_ENDS}]")))
    return found


def matches(value: Value, pattern: Value) -> Value:
    """``value RLIKE pattern``: anywhere in the text."""
    found = _pattern(value, pattern)
    return by_row(lambda text: found.search(text) is not None, BOOLEAN, value)


def _extract(value: Value, pattern: Value, group: Value | None = None) -> Value:
    """A group of the first match; nothing where there is none."""
    found, number = _pattern(value, pattern), 1 if group is None else constant_int(group)
    if not 0 <= number <= found.groups:
        raise NotExact

    def extracted(text: str) -> str:
        match = found.search(text)
        return (match[number] or "") if match else ""

    return by_row(extracted, STRING, value)


def _replace(value: Value, pattern: Value, replacement: Value) -> Value:
    """All matches, of a pattern that matches some characters, by a text without references."""
    found, by = _pattern(value, pattern), constant_text(replacement)
    if found.search("") or set(by) & set("\\$"):
        raise NotExact
    return by_row(lambda text: found.sub(lambda _: by, text), STRING, value)


def _count(value: Value, pattern: Value) -> Value:
    found = _pattern(value, pattern)
    if found.search(""):
        raise NotExact
    return by_row(lambda text: sum(1 for _ in found.finditer(text)), INTEGER, value)


FUNCTIONS: Functions = {
    "ilike": fixed(ilike, 2),
    "like": fixed(like, 2),
    "regexp": fixed(matches, 2),
    "regexp_count": fixed(_count, 2),
    "regexp_extract": Function(_extract, 2, 3),
    "regexp_like": fixed(matches, 2),
    "regexp_replace": fixed(_replace, 3),
    "rlike": fixed(matches, 2),
}
