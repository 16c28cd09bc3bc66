"""Names of Spark's functions that the driver evaluates."""

from __future__ import annotations

from dbt_incremental_dd.local import aggregates, expression_types, functions, generators, higher_order, windows

_SYNTAX = ("if", "nvl2", "mod", "dd_now", "timestampadd", "timestampdiff")
"""What is written like a function."""
NAMES: frozenset[str] = frozenset(
    (
        *_SYNTAX,
        *expression_types.NAMES,
        *aggregates.NAMES,
        *functions.NAMES,
        *generators.NAMES,
        *higher_order.FUNCTIONS,
        *windows.NAMES,
    )
)
"""In lower case. Every Spark has them, and none of the user's own can take their place."""
