"""How many rows of a collection one key has, about: what a probe by it brings, and so the order of joins."""

from __future__ import annotations

from typing import Protocol

from dbt_incremental_dd.differential.groups import RecomputeGroups
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, Get, Map

_UNKNOWN_DISTINCT = 1_000
_FILTERED = 0.3
"""The share of rows that a filter leaves, where nothing is known of them."""


class Statistics(Protocol):
    """What is known of stored collections without reading them."""

    def rows(self, collection: str) -> int:
        """About how many rows."""

    def distinct(self, collection: str, column: str) -> int | None:
        """At most so many values; None where that is not known."""


def size(node: Node, statistics: Statistics) -> float:
    """About how many rows the node has."""
    if isinstance(node, Get):
        return statistics.rows(node.collection)
    if isinstance(node, Filter):
        return _FILTERED * size(node.input, statistics)
    return max((size(child, statistics) for child in node.inputs), default=1)


def fanout(node: Node, columns: frozenset[Id], statistics: Statistics) -> float:
    """About how many rows of the node have the same values in ``columns``."""
    if isinstance(node, Accumulate | RecomputeGroups) and columns >= set(node.keys):
        return 1
    values = 1.0
    for column in columns:
        values *= _distinct(node, column, statistics) or _UNKNOWN_DISTINCT
    return max(size(node, statistics) / values, _FILTERED if isinstance(node, Filter) else 1)


def _distinct(node: Node, column: Id, statistics: Statistics) -> int | None:
    if isinstance(node, Get):
        return statistics.distinct(node.collection, dict(node.outputs)[column])
    if isinstance(node, Map):
        source = dict(node.outputs)[column].as_column
        return None if source is None else _distinct(node.input, source, statistics)
    below = [child for child in node.inputs if column in child.columns]
    return _distinct(below[0], column, statistics) if len(below) == 1 else None
