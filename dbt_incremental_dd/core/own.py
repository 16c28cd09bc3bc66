"""Which collections are the engine's own: they tell of its runs."""

from __future__ import annotations

PREFIX = "dd_"


def is_own(name: str) -> bool:
    """Whether a collection is the engine's own. No other one is without a schema."""
    return "." not in name and name.startswith(PREFIX)
