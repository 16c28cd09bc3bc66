"""The domain of a correlated subquery: the values of the outside that it is computed for, each once."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Domain, Join, Map, OuterJoin, Reduce


def distinct_values(node: Node, outputs: tuple[tuple[Id, Expr], ...]) -> Node:
    """All values that the expressions have in the plan, perhaps more.

    They are taken from as far below as they are found: what was joined for one subquery is not computed again for
    the next.
    """
    refs = {ref for _, expr in outputs for ref in expr.refs}
    while (below := _provider(node, refs)) is not None:
        node = below
    return Domain(Map(node, outputs))


def _provider(node: Node, refs: set[Id]) -> Node | None:
    """An input that has these columns, where what stands above it only adds others."""
    match node:
        case Map() if all(expr.sql == id for id, expr in node.outputs if id in refs):
            return node.input
        case OuterJoin(kind="left") if refs <= set(node.left.columns):
            return node.left
        case Join() if node.on and all(isinstance(predicate.tree, exp.NullSafeEQ) for predicate in node.on):
            return next((operand for operand in node.operands if refs <= set(operand.columns)), None)
        case Join(operands=(first, *others), on=()) if refs <= set(first.columns) and all(map(_is_one_row, others)):
            return first
    return None


def _is_one_row(node: Node) -> bool:
    while isinstance(node, Map):
        node = node.input
    return isinstance(node, Reduce) and node.global_row
