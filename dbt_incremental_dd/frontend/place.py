"""Where something stands in the user's SQL."""

from __future__ import annotations

import re


def place(sql: str, name: str) -> str:
    """`` (line 3, column 8)`` of the first spelling of a name, which may have parts (``t.k``) and backticks.

    Empty where the text does not have it.
    """
    parts = [part.strip("`") for part in name.split(".")]
    for start in range(len(parts)):
        spelling = r"\s*\.\s*".join(rf"`?{re.escape(part)}`?" for part in parts[start:])
        found = re.search(rf"(?<![\w`]){spelling}(?!\w)", sql, re.IGNORECASE)
        if found:
            return at(sql, found.start())
    return ""


def place_of_fragment(sql: str, fragment: str) -> str:
    """The same of a piece of SQL, whatever the blanks in it."""
    found = re.search(r"\s+".join(map(re.escape, fragment.split())), sql) if fragment.strip() else None
    return at(sql, found.start()) if found else ""


def at(sql: str, position: int) -> str:
    """`` (line 3, column 8)`` of a position in the text."""
    before = sql[:position]
    return f" (line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))})"
