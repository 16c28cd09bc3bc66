"""Makes a Fixpoint of bindings' plans: what does not recur is hoisted out, and what cannot be iterated is refused."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Distinct, Fallback, Join, Map, Negate, OuterJoin, SemiJoin
from dbt_incremental_dd.logical.passes.connect_joins import connect_joins
from dbt_incremental_dd.logical.passes.flatten_joins import flatten_joins
from dbt_incremental_dd.logical.passes.merge_maps import merge_maps
from dbt_incremental_dd.logical.passes.prune_columns import prune_columns
from dbt_incremental_dd.logical.passes.push_filters import push_filters
from dbt_incremental_dd.logical.passes.top_k import top_k
from dbt_incremental_dd.logical.recursion import Binding, Fixpoint, Hoisted, Recur

_PASSES = (top_k, push_filters, connect_joins, flatten_joins, prune_columns, merge_maps)
"""Those of ``passes.PASSES`` that keep a binding's plan one linear plan under one operator: neither joins of several
aggregates (split_distinct) nor one operator for several readers (share)."""
_NEGATION = "Recursion must not take away what it has found: compare with a relation outside of the recursion."


def fixpoint(plans: Sequence[tuple[str, Node, Schema]], limit: int | None) -> Fixpoint:
    """The recursion of these bindings: name, plan over Recur, and columns.

    Raises UnsupportedSQL where a binding is negated on its way to itself, or read by something that has no
    differential form.
    """
    hoisting = _Hoisting()
    bindings = tuple(Binding(name, hoisting.split(_optimized(plan, name)), schema) for name, plan, schema in plans)
    return Fixpoint(tuple(hoisting.operands), bindings, limit)


def is_linear(plan: Node) -> bool:
    """Whether the plan is a sum over single rows of its bindings, so that iterating over all of a binding's rows or
    over those of the last step only comes to the same."""
    for node in each_once(plan):
        recurring = [child for child in node.inputs if recurs(child)]
        if not recurring:
            continue
        if not node.is_linear or (isinstance(node, Join) and len(recurring) > 1):
            return False
    return True


def recurs(plan: Node) -> bool:
    """Whether it reads a binding."""
    return any(isinstance(node, Recur) for node in each_once(plan))


def _optimized(plan: Node, name: str) -> Node:
    for node in each_once(plan):
        _refuse(node, name)
    for rewrite in _PASSES:
        plan = rewrite(plan)
    return plan


def _refuse(node: Node, name: str) -> None:
    recurring = [recurs(child) for child in node.inputs]
    if not any(recurring):
        return
    if isinstance(node, Fallback):
        raise UnsupportedSQL(f"{name} is recursive through {node.reason}", "Write it otherwise, or outside.")
    negated = isinstance(node, Negate)
    negated |= isinstance(node, SemiJoin) and node.anti and recurring[1]
    negated |= isinstance(node, OuterJoin) and (recurring[1] or (node.kind == "full"))
    if negated:
        raise UnsupportedSQL(f"{name} is recursive through negation ({_said(node)})", _NEGATION)
    if any(expr.uses_now for expr in node.expressions):
        raise UnsupportedSQL(
            f"the run's time, dd_now(), inside of the recursive {name}", "Use it in a CTE that does not recur."
        )


def _said(node: Node) -> str:
    if isinstance(node, Negate):
        return "EXCEPT or INTERSECT"
    return "NOT EXISTS, NOT IN or an anti join" if isinstance(node, SemiJoin) else "the optional side of an outer join"


class _Hoisting:
    """Collects what does not recur, each once."""

    def __init__(self) -> None:
        self.operands: list[Node] = []
        self._ids = 0

    def split(self, node: Node) -> Node:
        """The plan with all that does not recur replaced by readings of operands."""
        if not recurs(node):
            return self._hoisted(node)
        if isinstance(node, Recur):
            return node
        if isinstance(node, SemiJoin) and recurs(node.right):
            return self.split(self._as_join(node))
        return node.with_inputs(tuple(self.split(child) for child in node.inputs))

    def _hoisted(self, node: Node) -> Hoisted:
        if node not in self.operands:
            self.operands.append(node)
        return Hoisted(self.operands.index(node), node)

    def _as_join(self, node: SemiJoin) -> Node:
        """A semi join as an inner one with distinct keys, or with the distinct left rows that have a match."""
        keys = self._right_keys(node)
        if keys is not None:
            right = Distinct(Map(node.right, tuple((id, Expr.column(id)) for id in keys)))
            joined = Join((node.left, right), node.on)
        else:
            renamed = {id: self._fresh(id) for id in node.left.columns}
            matched = Map(
                Join((node.left, node.right), node.on), tuple((new, Expr.column(id)) for id, new in renamed.items())
            )
            same = tuple(Expr(f"{id} <=> {new}") for id, new in renamed.items())
            joined = Join((node.left, Distinct(matched)), same)
        return Map(joined, tuple((id, Expr.column(id)) for id in node.columns))

    def _right_keys(self, node: SemiJoin) -> tuple[Id, ...] | None:
        """The right columns, if the condition is equalities of them with values of the left side."""
        found: list[Id] = []
        left, right = set(node.left.columns), set(node.right.columns)
        for conjunct in (c for predicate in node.on for c in predicate.conjuncts()):
            sides = conjunct.equality_sides()
            columns = [] if sides is None else [side for side in sides[:2] if side.as_column in right]
            others = [] if sides is None else [side for side in sides[:2] if side.refs <= left]
            if len(columns) != 1 or len(others) != 1:
                return None
            found.append(str(columns[0].as_column))
        return tuple(dict.fromkeys(found)) or None

    def _fresh(self, id: Id) -> Id:
        self._ids += 1
        return f"{id}_s{self._ids}"
