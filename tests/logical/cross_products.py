"""Finds cross products that an equality of the query would have tied."""

from __future__ import annotations

from collections.abc import Iterator

from dbt_incremental_dd.logical.explain import describe
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.joins import components
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, Join, Map, OuterJoin, SemiJoin

Sides = tuple[frozenset[Id], frozenset[Id]]


def untied(plan: Node, lowered: Node) -> list[str]:
    """The inner joins of a plan of which two operands stand untied beside each other although an equality ties them.

    ``lowered``: the plan before all rewrites, whose conjuncts are those that were written.
    """
    equalities = list(_equalities(lowered))
    found = []
    for node in each_once(plan):
        groups = components(node) if isinstance(node, Join) else []
        if len(groups) > 1:
            below = [{id for i in g for n in each_once(node.inputs[i]) for id in n.columns} for g in groups]
            found += [f"{describe(node)}: {a} = {b}" for a, b in equalities if _between(below, a, b)]
    return found


def _between(below: list[set[Id]], a: frozenset[Id], b: frozenset[Id]) -> bool:
    """Whether the sides of an equality are of two groups, and not also of one."""
    if any(a | b <= columns for columns in below):
        return False
    return any(a <= columns for columns in below) and any(b <= columns for columns in below)


def _equalities(lowered: Node) -> Iterator[Sides]:
    """All equalities that are conjuncts, over the columns in which they are written and those that these come from."""
    nodes = each_once(lowered)
    computed = {id: expr for node in nodes if isinstance(node, Map) for id, expr in node.outputs if expr.sql != id}
    for node in nodes:
        predicates = (node.predicate,) if isinstance(node, Filter) else ()
        if isinstance(node, Join | OuterJoin | SemiJoin):
            predicates = node.on
        for conjunct in (c for predicate in predicates for c in predicate.conjuncts()):
            sides = conjunct.equality_sides()
            if sides is not None and sides[0].refs and sides[1].refs:
                yield sides[0].refs, sides[1].refs
                yield _origin(sides[0], computed), _origin(sides[1], computed)


def _origin(expr: Expr, computed: dict[Id, Expr]) -> frozenset[Id]:
    while expr.refs & computed.keys():
        expr = expr.substitute(computed)
    return expr.refs
