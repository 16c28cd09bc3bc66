"""Room on Python's stack for queries that nest deeply: long chains of CTEs, joins, set operations, and operators."""

from __future__ import annotations

import sys

from dbt_incremental_dd.core.errors import UnsupportedSQL

_FRAMES = 5_000
"""Of functions that call each other. A block within a query takes some fifteen of them, so that Python's own limit of
1,000 is met by a chain of sixty CTEs. So many fit into a thread's stack of 1 MB."""


def allow_deep_nesting() -> None:
    """From here on, in all threads of the process; a limit that is higher already stays."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)


def nested_too_deeply() -> UnsupportedSQL:
    """What a RecursionError of a query is to its author."""
    return UnsupportedSQL("the query is nested too deeply", "Move a part of it into a model of its own.")
