"""Moves filters towards the collections, and those over a join into its condition.

    Filter(Join(a, b), p(a) AND q(a, b))    ->    Join(Filter(a, p(a)), b, on q(a, b))
    Filter(LeftJoin(a, b), p(a))            ->    LeftJoin(Filter(a, p(a)), b)
    LeftJoin(a, b, on p(b) AND q(a, b))     ->    LeftJoin(a, Filter(b, p(b)), on q(a, b))

Requires: row number filters have become TopK (top_k). Establishes: a conjunct stands as low as its columns allow, no
Filter stands over an inner Join.
"""

from __future__ import annotations

from collections.abc import Collection

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import (
    Distinct,
    Filter,
    FlatMap,
    Id,
    Join,
    Map,
    Node,
    OuterJoin,
    Reduce,
    SemiJoin,
    TopK,
    Union,
    Window,
)

Conjuncts = tuple[Expr, ...]


def push_filters(plan: Node) -> Node:
    """The plan with each filter conjunct as low as it can stand."""
    return _push(plan, ())


def _push(node: Node, conjuncts: Conjuncts) -> Node:
    """``node`` filtered by ``conjuncts``."""
    match node:
        case Filter():
            return _push(node.input, conjuncts + node.predicate.conjuncts())
        case Map():
            return _through_map(node, conjuncts)
        case Join():
            return _into_join(node, conjuncts)
        case OuterJoin(kind="left") | SemiJoin():
            return _around_left(node, conjuncts)
        case Union(widens=False):
            sides = (_push(o, tuple(c.substitute(_renaming(node, o)) for c in conjuncts)) for o in node.operands)
            return node.with_inputs(tuple(sides))
        case Distinct():
            return Distinct(_push(node.input, conjuncts))
        case Reduce() | Window() | TopK():
            below, above = _split(conjuncts, node.keys)
            own = tuple(c for c in below if c.refs)
            above += tuple(c for c in below if not c.refs)
            return _filtered(node.with_inputs((_push(node.input, own),)), above)
        case FlatMap():
            below, above = _split(conjuncts, node.input.columns)
            return _filtered(node.with_inputs((_push(node.input, below),)), above)
    return _filtered(node.with_inputs(tuple(_push(child, ()) for child in node.inputs)), conjuncts)


def _filtered(node: Node, conjuncts: Conjuncts) -> Node:
    for conjunct in conjuncts:
        node = Filter(node, conjunct)
    return node


def _split(conjuncts: Conjuncts, columns: Collection[Id]) -> tuple[Conjuncts, Conjuncts]:
    """Those over these columns alone, and the others."""
    own = set(columns)
    return tuple(c for c in conjuncts if c.refs <= own), tuple(c for c in conjuncts if not c.refs <= own)


def _through_map(node: Map, conjuncts: Conjuncts) -> Node:
    by = dict(node.outputs)
    return Map(_push(node.input, tuple(c.substitute(by) for c in conjuncts)), node.outputs)


def _renaming(node: Union, side: Node) -> dict[str, Expr]:
    return {id: Expr.column(own) for id, own in zip(node.ids, side.columns, strict=True)}


def _into_join(node: Join, conjuncts: Conjuncts) -> Node:
    rest = tuple(conjunct for predicate in node.on for conjunct in predicate.conjuncts()) + conjuncts
    operands = []
    for operand in node.operands:
        below, rest = _split_off(rest, operand)
        operands.append(_push(operand, below))
    return Join(tuple(operands), rest)


def _around_left(node: OuterJoin | SemiJoin, conjuncts: Conjuncts) -> Node:
    """Filters go to the left. A condition on the right alone decides which right rows there are to match.

    One on the left alone decides in a semi join which rows are kept, in the others only which can match.
    """
    left, above = _split(conjuncts, node.left.columns)
    on = tuple(conjunct for predicate in node.on for conjunct in predicate.conjuncts())
    right, on = _split_off(on, node.right)
    if isinstance(node, SemiJoin) and not node.anti:
        more, on = _split_off(on, node.left)
        left += more
    sides = (_push(node.left, left), _push(node.right, right))
    if isinstance(node, SemiJoin):
        return _filtered(SemiJoin(node.anti, *sides, on), above)
    return _filtered(OuterJoin(node.kind, *sides, on), above)


def _split_off(conjuncts: Conjuncts, node: Node) -> tuple[Conjuncts, Conjuncts]:
    """Those over the columns of ``node``, at least one, and the others."""
    below, above = _split(conjuncts, node.columns)
    return tuple(c for c in below if c.refs), tuple(c for c in conjuncts if not c.refs or c in above)
