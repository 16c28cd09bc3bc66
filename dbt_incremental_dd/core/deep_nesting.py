"""Room on Python's stack for queries that nest deeply: long chains of CTEs, joins, set operations, and operators."""

from __future__ import annotations

import sys

from dbt_incremental_dd.core.errors import UnsupportedSQL

_FRAMES = 5_000
"""Python calls within each other. Each block inside another takes some fifteen, so sixty nested CTEs reach Python's own
limit of 1,000. This many fit into a thread's stack of 1 MB."""


def allow_deep_nesting() -> None:
    """Raises Python's limit for all threads of the process, for good; a higher limit is kept."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)


def nested_too_deeply() -> UnsupportedSQL:
    """What the author of a query is told in place of a RecursionError."""
    return UnsupportedSQL("the query is nested too deeply", "Move a part of it into a model of its own.")
