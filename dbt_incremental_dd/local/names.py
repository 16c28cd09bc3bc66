"""Names of Spark's functions that the driver evaluates."""

from __future__ import annotations

from dbt_incremental_dd.local import expression_types, functions, generators, windows

NAMES: frozenset[str] = frozenset(
    ("if", "mod", "dd_now", *expression_types.NAMES, *functions.NAMES, *generators.NAMES, *windows.NAMES)
)
"""In lower case. Every Spark has them, and none of the user's own can take their place."""
