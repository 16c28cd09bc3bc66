"""Equal subplans become one, which several read: computed once in a run, and its states stored once.

    Join(Reduce(Get(a: x), by x), Reduce(Get(a: y), by y))    ->    Join(r, Map(r, [y: x])), r = Reduce(Get(a: x), by x)

So a CTE that is read twice, or the outer rows that a correlated subquery is computed for, cost what one costs.
Requires: no later pass rebuilds a node once for each of its readers. Establishes: of operators that are equal but for
their columns' ids, one is left, unless they only look at single rows of collections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import by_single_rows, each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import (
    Constant,
    Fallback,
    Filter,
    FlatMap,
    Get,
    Join,
    Map,
    OuterJoin,
    Reduce,
    SemiJoin,
    TopK,
    Union,
    Window,
)
from dbt_incremental_dd.logical.recursion import Bound, Fixpoint


def share(plan: Node) -> Node:
    """The plan with equal subplans made one."""
    read = Counter(node.collection for node in plan.walk() if isinstance(node, Get))
    return _Sharing(plan).once(plan) if any(n > 1 for n in read.values()) else plan


class _Sharing:
    """Numbers that are equal for equal subplans, and the first subplan of each number."""

    def __init__(self, plan: Node) -> None:
        self._numbers: dict[int, int] = {}
        self._cheap = by_single_rows(plan)
        self._first: dict[int, Node] = {}
        known: dict[object, int] = {}
        for node in each_once(plan):
            below = tuple(self._numbers[id(child)] for child in node.inputs)
            form = (type(node).__name__, below, _form(node))
            self._numbers[id(node)] = known.setdefault(form, len(known))

    def once(self, node: Node) -> Node:
        """The subplan; where an equal one was met before, that one with this one's ids."""
        if id(node) in self._cheap:
            return node
        number = self._numbers[id(node)]
        if number in self._first:
            first = self._first[number]
            if first.columns == node.columns:
                return first
            ids = zip(node.columns, first.columns, strict=True)
            return Map(first, tuple((id, Expr.column(own)) for id, own in ids))
        made = node.with_inputs(tuple(self.once(child) for child in node.inputs))
        self._first[number] = made
        return made


def _form(node: Node) -> object:
    """All there is to an operator but its inputs and its columns' ids: an input's column is named by its position."""
    ids = [id for child in node.inputs for id in child.columns]
    places = {id: Expr.column(f"dd_{i}") for i, id in enumerate(ids)}

    def sql(*exprs: Expr) -> tuple[str, ...]:
        return tuple(expr.substitute(places).sql for expr in exprs)

    match node:
        case Get():
            return node.collection, tuple(name for _, name in node.outputs)
        case Constant():
            return node.sql, len(node.ids)
        case Fallback():
            return node.sql, node.names, node.temporal
        case Fixpoint():
            return node.bindings, node.limit
        case Bound():
            return node.binding, tuple(name for _, name in node.outputs)
        case Union():
            return node.widens
        case Map():
            return sql(*(expr for _, expr in node.outputs))
        case Filter():
            return sql(node.predicate)
        case FlatMap():
            return sql(node.generator), node.outer, len(node.outputs)
        case Join() | OuterJoin() | SemiJoin():
            return getattr(node, "kind", None), getattr(node, "anti", None), sql(*node.on)
        case Reduce() | TopK() | Window():
            return tuple(ids.index(key) for key in node.keys), _within_groups(node, sql)
    return node.settings


def _within_groups(node: Reduce | TopK | Window, sql: Callable[..., tuple[str, ...]]) -> object:
    match node:
        case Reduce():
            return sql(*(a.sql for a in node.aggregates)), node.global_row
        case Window():
            return sql(*(function for _, function in node.functions))
    directions = tuple((o.descending, o.nulls_first) for o in node.order)
    return sql(*(o.expr for o in node.order)), directions, node.limit, node.offset
