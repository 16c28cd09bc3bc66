"""Leaves out columns that nobody reads, down to the collections.

    Map(Join(Get(a: x, y), Get(b: x, z)), [y])    ->    Map(Join(Get(a: x, y), Get(b: x)), [y])

Requires nothing. Establishes: a Get reads only columns that the plan uses. An operator that several read keeps what
any of them wants. Operators say themselves what they need (``Node.needed_columns``): those over whole rows (Distinct,
Threshold, Negate, set operations, TopK by its ties) keep all columns.
"""

from __future__ import annotations

from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes.map import projected


def prune_columns(plan: Node) -> Node:
    """The plan with the same columns on top, and as few as possible below."""
    nodes = each_once(plan)
    wanted: dict[int, frozenset[Id]] = {id(plan): frozenset(plan.columns)}
    for node in reversed(nodes):
        for child, needed in zip(node.inputs, node.needed_columns(wanted[id(node)]), strict=True):
            wanted[id(child)] = wanted.get(id(child), frozenset()) | (needed & frozenset(child.columns))
    made: dict[int, Node] = {}
    for node in nodes:
        made[id(node)] = node.pruned(wanted[id(node)], tuple(made[id(child)] for child in node.inputs))
    return projected(made[id(plan)], plan.columns)
