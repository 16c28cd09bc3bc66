"""Functions."""

from __future__ import annotations


def macros() -> list[str]:
    return []
