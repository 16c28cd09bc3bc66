"""Patterns of dates and times, as far as each of their fields has a fixed width."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbt_incremental_dd.local.value import NotExact

_FIELDS = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_RUN = re.compile(r"(?P<field>([a-zA-Z])\2*)|'(?P<quoted>[^']+)'|(?P<plain>[^a-zA-Z'\[\]{}#]+)", re.ASCII)


@dataclass(frozen=True)
class Part:
    """A field's letters, or what is written as it stands; a field is as wide as it has letters."""

    text: str
    is_field: bool


def parts_of(pattern: str) -> list[Part]:
    """Of a pattern. Raises NotExact for optional sections and fields of other kinds; ``S...`` is among the fields."""
    parts, end = [], 0
    for found in _RUN.finditer(pattern):
        if found.start() != end:
            raise NotExact
        end = found.end()
        field = found["field"]
        if field is not None and field not in _FIELDS and set(field) != {"S"}:
            raise NotExact
        parts.append(Part(field or found["quoted"] or found["plain"], field is not None))
    if end != len(pattern) or not parts:
        raise NotExact
    return parts
