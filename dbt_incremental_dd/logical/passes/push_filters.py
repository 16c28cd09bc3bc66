"""Moves filters towards the collections, and those over a join into its condition.

    Filter(Join(a, b), p(a) AND q(a, b))    ->    Join(Filter(a, p(a)), b, on q(a, b))
    Filter(LeftJoin(a, b), p(a))            ->    LeftJoin(Filter(a, p(a)), b)
    LeftJoin(a, b, on p(b) AND q(a, b))     ->    LeftJoin(a, Filter(b, p(b)), on q(a, b))
    Filter(LeftJoin(a, s(Domain(a))), p(a)) ->    LeftJoin(Filter(a, p(a)), s(Distinct(Filter(a, p(a)))))
    Filter(LeftJoin(a, b), a.x = b.y)       ->    Join(a, b, on a.x = b.y)

The last only where nothing else ties a to b. Conjuncts that stand over the same rows keep their order: one may
guard the next from raising an error.
Requires: row number filters have become TopK (top_k); the source of a Domain and the left side that it is found in are
one node. Establishes: a conjunct stands as low as its columns allow, no Filter stands over an inner Join, and there is
no Domain.
"""

from __future__ import annotations

from collections.abc import Collection

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.joins import equates
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import (
    Distinct,
    Domain,
    Filter,
    FlatMap,
    Join,
    Map,
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
    return _Pushing(plan).push(plan, ())


class _Pushing:
    """``_filtered_sources``: the sources of domains, as the left sides that they were last met in have them."""

    def __init__(self, plan: Node) -> None:
        self._sources = {id(node.source) for node in each_once(plan) if isinstance(node, Domain)}
        self._filtered_sources: dict[int, Node] = {}

    def push(self, node: Node, conjuncts: Conjuncts) -> Node:
        """``node`` filtered by ``conjuncts``."""
        made = self._push(node, conjuncts)
        if id(node) in self._sources:
            self._filtered_sources[id(node)] = made
        return made

    def _push(self, node: Node, conjuncts: Conjuncts) -> Node:
        match node:
            case Filter():
                return self.push(node.input, node.predicate.conjuncts() + conjuncts)
            case Map():
                by = dict(node.outputs)
                return Map(self.push(node.input, tuple(c.substitute(by) for c in conjuncts)), node.outputs)
            case Join():
                return self._into_join(node, conjuncts)
            case OuterJoin() if _is_inner(node, conjuncts):
                return self.push(Join((node.left, node.right), node.on), conjuncts)
            case OuterJoin(kind="left") | SemiJoin():
                return self._around_left(node, conjuncts)
            case Union(widens=False):
                sides = (
                    self.push(o, tuple(c.substitute(_renaming(node, o)) for c in conjuncts)) for o in node.operands
                )
                return node.with_inputs(tuple(sides))
            case Domain():
                return self._domain(node, conjuncts)
            case Reduce() | Window() | TopK():
                below, above = _split(conjuncts, node.keys)
                own = tuple(c for c in below if c.refs)
                above += tuple(c for c in below if not c.refs)
                return _filtered(node.with_inputs((self.push(node.input, own),)), above)
            case FlatMap():
                below, above = _split(conjuncts, node.input.columns)
                return _filtered(node.with_inputs((self.push(node.input, below),)), above)
        if node.passes_filters:
            return node.with_inputs((self.push(node.inputs[0], conjuncts),))
        return _filtered(node.with_inputs(tuple(self.push(child, ()) for child in node.inputs)), conjuncts)

    def _domain(self, node: Domain, conjuncts: Conjuncts) -> Node:
        """As a Distinct, of the source as filters have left it."""
        source = self._filtered_sources.get(id(node.source))
        values = node.input if source is None else node.input.with_inputs((source,))
        return Distinct(values if source is not None and not conjuncts else self.push(values, conjuncts))

    def _into_join(self, node: Join, conjuncts: Conjuncts) -> Node:
        rest = _conjuncts(node.on) + conjuncts
        operands = []
        for operand in node.operands:
            below, rest = _split_off(rest, operand)
            operands.append(self.push(operand, below))
        return Join(tuple(operands), rest)

    def _around_left(self, node: OuterJoin | SemiJoin, conjuncts: Conjuncts) -> Node:
        """Filters go to the left. A condition on the right alone decides which right rows there are to match.

        One on the left alone decides in a semi join which rows are kept, in the others only which can match.
        """
        left, above = _split(conjuncts, node.left.columns)
        right, on = _split_off(_conjuncts(node.on), node.right)
        if isinstance(node, SemiJoin) and not node.anti:
            more, on = _split_off(on, node.left)
            left += more
        first = self.push(node.left, left)
        second = self.push(node.right, right)
        if isinstance(node, SemiJoin):
            return _filtered(SemiJoin(node.anti, first, second, on), above)
        return _filtered(OuterJoin(node.kind, first, second, on), above)


def _filtered(node: Node, conjuncts: Conjuncts) -> Node:
    for conjunct in conjuncts:
        node = Filter(node, conjunct)
    return node


def _conjuncts(predicates: Conjuncts) -> Conjuncts:
    return tuple(conjunct for predicate in predicates for conjunct in predicate.conjuncts())


def _split(conjuncts: Conjuncts, columns: Collection[Id]) -> tuple[Conjuncts, Conjuncts]:
    """Those over these columns alone, and the others."""
    own = set(columns)
    return tuple(c for c in conjuncts if c.refs <= own), tuple(c for c in conjuncts if not c.refs <= own)


def _split_off(conjuncts: Conjuncts, node: Node) -> tuple[Conjuncts, Conjuncts]:
    """Those over the columns of ``node``, at least one, and the others."""
    below, above = _split(conjuncts, node.columns)
    return tuple(c for c in below if c.refs), tuple(c for c in conjuncts if not c.refs or c in above)


def _renaming(node: Union, side: Node) -> dict[str, Expr]:
    return {id: Expr.column(own) for id, own in zip(node.ids, side.columns, strict=True)}


def _is_inner(node: OuterJoin, conjuncts: Conjuncts) -> bool:
    """Whether what is above equates the sides, which nothing else does: no row that an outer join adds gets through."""
    left, right = frozenset(node.left.columns), frozenset(node.right.columns)
    if any(equates(c, left, right) for c in _conjuncts(node.on)):
        return False
    return any(equates(c, left, right) and _is_null_of(c, node) for c in conjuncts)


def _is_null_of(equality: Expr, node: OuterJoin) -> bool:
    """Whether the equality is unknown where the side that has no match is NULL: it compares that side's column."""
    a, b, null_safe = equality.equality_sides() or (equality, equality, True)
    extended = set(node.columns) if node.kind == "full" else set(node.right.columns)
    return not null_safe and all(side.as_column for side in (a, b) if side.refs & extended)
