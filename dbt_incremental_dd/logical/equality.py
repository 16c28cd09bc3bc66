"""SQL that compares values of any type: Spark's own ``<=>`` takes neither maps nor variants."""

from __future__ import annotations

from dbt_incremental_dd.core.types import Map, Type
from dbt_incremental_dd.logical.sql_types import is_orderable


def same(one: str, other: str, type: Type) -> str:
    """SQL that is true where two expressions of one type have the same value, or both are NULL, and else false."""
    return f"{_compared(one, type)} <=> {_compared(other, type)}"


def _compared(sql: str, type: Type) -> str:
    """An expression that ``<=>`` takes, equal where the values are."""
    if is_orderable(type):
        return sql
    if isinstance(type, Map) and is_orderable(type.value):
        return f"sort_array(map_entries({sql}))"
    json = f"to_json(named_struct('v', {sql}), map('ignoreNullFields', 'false'))"
    return f"CASE WHEN {sql} IS NOT NULL THEN {json} END"
