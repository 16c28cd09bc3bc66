"""Moves filters towards the collections, and those over a join into its condition.

    Filter(Join(a, b), p(a) AND q(a, b))    ->    Join(Filter(a, p(a)), b, on q(a, b))
    Filter(LeftJoin(a, b), p(a))            ->    LeftJoin(Filter(a, p(a)), b)

Requires nothing. Establishes: a conjunct stands as low as its columns allow; no Filter stands over an inner Join.
"""

from __future__ import annotations

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import (
    Distinct,
    Filter,
    FlatMap,
    Join,
    Map,
    Node,
    OuterJoin,
    Reduce,
    SemiJoin,
    Union,
    Window,
)


def push_filters(plan: Node) -> Node:
    """The plan with each filter conjunct as low as it can stand."""
    return _push(plan, ())


def _push(node: Node, conjuncts: tuple[Expr, ...]) -> Node:
    """``node`` filtered by ``conjuncts``."""
    match node:
        case Filter():
            return _push(node.input, conjuncts + node.predicate.conjuncts())
        case Map():
            return _through_map(node, conjuncts)
        case Join():
            return _into_join(node, conjuncts)
        case OuterJoin(kind="left") | SemiJoin():
            below, above = _split(conjuncts, node.left)
            inner = node.with_inputs((_push(node.left, below), _push(node.right, ())))
            return _filtered(inner, above)
        case Union():
            sides = (
                _push(side, tuple(c.substitute(_renaming(node, side)) for c in conjuncts)) for side in node.operands
            )
            return node.with_inputs(tuple(sides))
        case Distinct():
            return Distinct(_push(node.input, conjuncts))
        case Reduce() | Window():
            keys = set(node.keys)
            below = tuple(c for c in conjuncts if c.refs and c.refs <= keys)
            above = tuple(c for c in conjuncts if c not in below)
            return _filtered(node.with_inputs((_push(node.input, below),)), above)
        case FlatMap():
            below, above = _split(conjuncts, node.input)
            return _filtered(node.with_inputs((_push(node.input, below),)), above)
    return _filtered(node.with_inputs(tuple(_push(child, ()) for child in node.inputs)), conjuncts)


def _filtered(node: Node, conjuncts: tuple[Expr, ...]) -> Node:
    for conjunct in conjuncts:
        node = Filter(node, conjunct)
    return node


def _split(conjuncts: tuple[Expr, ...], below: Node) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    columns = set(below.columns)
    return tuple(c for c in conjuncts if c.refs <= columns), tuple(c for c in conjuncts if not c.refs <= columns)


def _through_map(node: Map, conjuncts: tuple[Expr, ...]) -> Node:
    by = dict(node.outputs)
    return Map(_push(node.input, tuple(c.substitute(by) for c in conjuncts)), node.outputs)


def _renaming(node: Union, side: Node) -> dict[str, Expr]:
    return {id: Expr.column(own) for id, own in zip(node.ids, side.columns, strict=True)}


def _into_join(node: Join, conjuncts: tuple[Expr, ...]) -> Node:
    rest = [conjunct for predicate in node.on for conjunct in predicate.conjuncts()] + list(conjuncts)
    operands = []
    for operand in node.operands:
        below, above = _split(tuple(rest), operand)
        own = tuple(c for c in below if c.refs)
        rest = list(above) + [c for c in below if not c.refs]
        operands.append(_push(operand, own))
    return Join(tuple(operands), tuple(rest))
