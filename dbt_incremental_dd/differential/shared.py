"""Operators that several others read: their deltas are worth computing once and keeping for the run."""

from __future__ import annotations

from collections import Counter

from dbt_incremental_dd.logical.graph import by_single_rows, each_once
from dbt_incremental_dd.logical.node import Node


def shared(root: Node) -> set[int]:
    """Identities of those that are read more than once; not of ones that only look at single rows of collections."""
    readers = Counter(id(child) for node in each_once(root) for child in node.inputs)
    return {node for node, count in readers.items() if count > 1} - by_single_rows(root)
