"""``dd_now()`` stays in Map, Filter and FlatMap alone: elsewhere it becomes a column that a Map computes below.

    Reduce(x, [s: sum(datediff(dd_now(), c1))])    ->    Reduce(Map(x, [+ n: dd_now()]), [s: sum(datediff(n, c1))])
    Join(a, b, on c1 < c2 AND c3 < dd_now() + c4)  ->    Filter(Join(a, b, on c1 < c2), c3 < dd_now() + c4)

Requires: filters are pushed down (push_filters). Establishes: what changes with time is an operator over single rows.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    Map,
    Order,
    OuterJoin,
    Reduce,
    SemiJoin,
    TopK,
    Window,
)


def lift_now(plan: Node) -> Node:
    """The plan with the same columns on top."""
    node = plan.with_inputs(tuple(lift_now(child) for child in plan.inputs))
    match node:
        case Join():
            return _above(node)
        case OuterJoin() | SemiJoin() if any(p.uses_now for p in node.on):
            now = f"{node.left.columns[0]}_now"
            on = tuple(_with_column(predicate, now) for predicate in node.on)
            return _only(replace(node, left=_beside(node.left, now), on=on), plan)
        case Reduce() if any(a.sql.uses_now for a in node.aggregates):
            now = f"{node.aggregates[0].id}_now"
            aggregates = tuple(_aggregate(a, now) for a in node.aggregates)
            return replace(node, input=_beside(node.input, now), aggregates=aggregates)
        case Window() if any(f.uses_now for _, f in node.functions):
            now = f"{node.functions[0][0]}_now"
            functions = tuple((id, _with_column(f, now)) for id, f in node.functions)
            return _only(replace(node, input=_beside(node.input, now), functions=functions), plan)
        case TopK() if any(o.expr.uses_now for o in node.order):
            now = f"{node.input.columns[0]}_now"
            order = tuple(Order(_with_column(o.expr, now), o.descending, o.nulls_first) for o in node.order)
            return _only(replace(node, input=_beside(node.input, now), order=order), plan)
    return node


def _above(join: Join) -> Node:
    """Conditions that move with time, as filters over the join."""
    moving = tuple(predicate for predicate in join.on if predicate.uses_now)
    node: Node = replace(join, on=tuple(predicate for predicate in join.on if not predicate.uses_now))
    for predicate in moving:
        node = Filter(node, predicate)
    return node


def _beside(node: Node, now: Id) -> Node:
    return Map(node, (*((id, Expr.column(id)) for id in node.columns), (now, Expr("dd_now()"))))


def _only(node: Node, plan: Node) -> Node:
    return Map(node, tuple((id, Expr.column(id)) for id in plan.columns))


def _with_column(expr: Expr, now: Id) -> Expr:
    if not expr.uses_now:
        return expr
    holder = exp.Tuple(expressions=[expr.tree.copy()])
    for call in list(holder.find_all(exp.Anonymous)):
        if str(call.this).lower() == "dd_now":
            call.replace(exp.column(now))
    return Expr.of(holder.expressions[0])


def _aggregate(a: Aggregate, now: Id) -> Aggregate:
    condition = _with_column(a.filter, now) if a.filter is not None else None
    args = tuple(_with_column(arg, now) for arg in a.args)
    return replace(a, sql=_with_column(a.sql, now), args=args, filter=condition)
