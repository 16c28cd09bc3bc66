"""A row as a log has it: the bytes of each value's text form, or of binary values the value."""

from __future__ import annotations

from typing import Final


class Unchanged:
    """The one value ``UNCHANGED``."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
"""Stands for a large value that an update has left alone, and that the log does not have again."""
Cell = bytes | Unchanged | None
Cells = tuple[Cell, ...]
