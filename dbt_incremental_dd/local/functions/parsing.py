"""Texts read as dates and moments by a pattern: those that have all its fields, each as wide as it is there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.functions.datetime_pattern import NAMED, parts_of
from dbt_incremental_dd.local.functions.function import Functions, zoned
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import constant_text, require, require_all
from dbt_incremental_dd.local.zones import moment, within

_SHAPE = (
    ("", "yyyy", ""),
    ("-", "MM", "01"),
    ("-", "dd", "01"),
    (" ", "HH", "00"),
    (":", "mm", "00"),
    (":", "ss", "00"),
)
"""Of the text of a time: what comes before a field, and what stands for one that the pattern does not have."""
_MOST_DIGITS = 6


def _read(value: Value, pattern: Value) -> Value:
    """The local time that each text is. What the pattern does not say is the first: of January, of the day."""
    require(value, STRING)
    fields, expression, at = {}, "", 0
    for part in parts_of(constant_text(pattern)):
        width = len(part.text)
        expression += f"[0-9]{{{width}}}" if part.is_field else re.escape(part.text)
        if part.is_field:
            if part.text in NAMED:
                raise NotExact
            name = "S" if part.text[0] == "S" else part.text
            if name in fields or (name == "S" and width > _MOST_DIGITS):
                raise NotExact
            fields[name] = pc.utf8_slice_codeunits(value.data, at, at + width)
        at += width
    if "yyyy" not in fields:
        raise NotExact
    require_all(pc.match_substring_regex(value.data, f"^(?s:{expression})$"))
    require_all(pc.equal(pc.utf8_length(value.data), at))
    pieces = [piece for before, name, absent in _SHAPE for piece in (before, fields.get(name, absent)) if piece != ""]
    if "S" in fields:
        pieces += [".", fields["S"]]
    text = pc.binary_join_element_wise(*pieces, "", null_handling="emit_null")
    return within(Value(pc.cast(text, pa.timestamp("us")), TIMESTAMP_NTZ))


def _to(type: Type) -> Callable[..., Value]:
    """By a pattern, or as CAST does it."""

    def parsed(zone: str, value: Value, pattern: Value | None = None) -> Value:
        if pattern is None:
            return cast(value, type, zone)
        times = _read(value, pattern)
        if type == DATE:
            return within(Value(pc.cast(pc.floor_temporal(times.data, unit="day"), pa.date32()), DATE))
        return moment(times, zone) if type == TIMESTAMP else times

    return parsed


FUNCTIONS: Functions = {
    "to_date": zoned(_to(DATE), 1, 2),
    "to_timestamp": zoned(_to(TIMESTAMP), 1, 2),
    "to_timestamp_ltz": zoned(_to(TIMESTAMP), 1, 2),
    "to_timestamp_ntz": zoned(_to(TIMESTAMP_NTZ), 1, 2),
}
