"""Joins of joins become one join of many inputs.

    Join(Join(a, b, on p), c, on q)    ->    Join(a, b, c, on p AND q)

Requires: no Filter stands between inner joins (push_filters). Establishes: no Join is an operand of a Join, also not
under a Map that only renames or leaves out columns.
"""

from __future__ import annotations

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import bottom_up
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Join, Map


def flatten_joins(plan: Node) -> Node:
    """The plan with nested inner joins made one."""
    return bottom_up(plan, _flat)


def _flat(node: Node) -> Node:
    if not isinstance(node, Join):
        return node
    operands: list[Node] = []
    on: list[Expr] = list(node.on)
    renames: dict[str, Expr] = {}
    for operand in node.operands:
        inner, names = _inner_join(operand)
        if inner is None:
            operands.append(operand)
            continue
        operands += inner.operands
        on += inner.on
        renames.update(names)
    flat = Join(tuple(operands), tuple(predicate.substitute(renames) for predicate in on))
    if flat.columns == node.columns and not renames:
        return flat
    return Map(flat, tuple((id, renames.get(id, Expr.column(id))) for id in node.columns))


def _inner_join(operand: Node) -> tuple[Join | None, dict[str, Expr]]:
    """The join that an operand is, perhaps under a Map of plain columns, and what that Map's columns are."""
    if isinstance(operand, Join):
        return operand, {}
    if isinstance(operand, Map) and isinstance(operand.input, Join):
        names = {id: expr for id, expr in operand.outputs if expr.as_column}
        if len(names) == len(operand.outputs):
            return operand.input, {id: expr for id, expr in names.items() if expr.sql != id}
    return None, {}
