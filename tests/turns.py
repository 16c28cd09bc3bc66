"""What CI runs of the tests that are too many for each commit: another part of them in turn."""

from __future__ import annotations

import os

TURN = os.environ.get("DD_TURN")
"""CI's number of the commit, which is its time; not given elsewhere, where all long tests run."""


def in_turn(parts: int) -> int:
    """The part whose turn it is, of those from 0 to below ``parts``; the first where no turn is given."""
    return int(TURN or 0) % parts
