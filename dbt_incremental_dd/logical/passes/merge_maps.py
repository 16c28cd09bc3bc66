"""Two Maps in a row become one, where no computed column would be computed twice.

    Map(Map(x, [b: a + 1]), [c: b])    ->    Map(x, [c: a + 1])

Requires nothing. Establishes: no Map of plain columns stands under a Map; a Map that changes nothing is gone.
"""

from __future__ import annotations

from collections import Counter

from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Map


def merge_maps(plan: Node) -> Node:
    """The plan with Maps merged."""
    made: dict[int, Node] = {}
    for node in each_once(plan):
        made[id(node)] = _merged(node.with_inputs(tuple(made[id(child)] for child in node.inputs)))
    return made[id(plan)]


def _merged(node: Node) -> Node:
    while isinstance(node, Map) and isinstance(node.input, Map) and _may_merge(node, node.input):
        by = dict(node.input.outputs)
        node = Map(node.input.input, tuple((id, expr.substitute(by)) for id, expr in node.outputs))
    return node.input if isinstance(node, Map) and _is_identity(node) else node


def _may_merge(above: Map, below: Map) -> bool:
    """Whether no column that is computed below is read twice above; constants cost nothing."""
    uses = Counter(ref for _, expr in above.outputs for ref in expr.tree_refs)
    computed = {id for id, expr in below.outputs if expr.as_column is None and expr.refs}
    return all(uses[id] <= 1 for id in computed)


def _is_identity(node: Map) -> bool:
    same = all(expr.as_column == id for id, expr in node.outputs)
    return same and node.columns == node.input.columns
