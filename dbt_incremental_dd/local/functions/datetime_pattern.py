"""Patterns of dates and times, of fields of fixed width and of names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbt_incremental_dd.local.value import NotExact

_FIELDS = ("yyyy", "MM", "dd", "HH", "mm", "ss")
NAMED = ("MMM", "MMMM", "LLL", "LLLL", "E", "EE", "EEE", "EEEE")
"""Fields that are written out: months, as parts of dates or alone, and days of the week; four letters are all of the
name, fewer its first three."""
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""In English, as Spark writes them in every locale."""
_RUN = re.compile(r"(?P<field>([a-zA-Z])\2*)|'(?P<quoted>[^']+)'|(?P<plain>[^a-zA-Z'\[\]{}#]+)", re.ASCII)


@dataclass(frozen=True)
class Part:
    """A field's letters, or what is written as it stands; a field is as wide as it has letters, if it is no name."""

    text: str
    is_field: bool


def parts_of(pattern: str) -> list[Part]:
    """Of a pattern. Raises NotExact for optional sections and fields of other kinds; ``S...`` and names are among the
    fields."""
    parts, end = [], 0
    for found in _RUN.finditer(pattern):
        if found.start() != end:
            raise NotExact
        end = found.end()
        field = found["field"]
        if field is not None and field not in (*_FIELDS, *NAMED) and set(field) != {"S"}:
            raise NotExact
        parts.append(Part(field or found["quoted"] or found["plain"], field is not None))
    if end != len(pattern) or not parts:
        raise NotExact
    return parts
