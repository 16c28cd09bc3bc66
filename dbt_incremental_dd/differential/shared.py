"""Operators that several others read: their deltas are worth computing once and keeping for the run."""

from __future__ import annotations

from collections import Counter

from dbt_incremental_dd.logical.nodes import Constant, Filter, FlatMap, Get, Map, Negate, Node, Union, each_once


def shared(root: Node) -> list[Node]:
    """Those that are read more than once, inputs first; but not ones that only look at single rows of collections."""
    nodes = each_once(root)
    readers = Counter(id(child) for node in nodes for child in node.inputs)
    cheap: dict[int, bool] = {}
    for node in nodes:
        alone = isinstance(node, Get | Constant | Map | Filter | FlatMap | Union | Negate)
        cheap[id(node)] = alone and all(cheap[id(child)] for child in node.inputs)
    return [node for node in nodes if readers[id(node)] > 1 and not cheap[id(node)]]
