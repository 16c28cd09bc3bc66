"""Which operands of an inner join are tied to each other by equalities; what is not, is a cross product."""

from __future__ import annotations

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.logical.nodes import Join


def equates(conjunct: Expr, left: frozenset[Id], right: frozenset[Id]) -> bool:
    """Whether it is an equality of a value of the one side with a value of the other."""
    sides = conjunct.equality_sides()
    if sides is None or not sides[0].refs or not sides[1].refs:
        return False
    a, b, _ = sides
    return (a.refs <= left and b.refs <= right) or (b.refs <= left and a.refs <= right)


def components(join: Join) -> list[frozenset[int]]:
    """The operands, by position, in groups that equalities tie together: those between groups, not only operands."""
    groups = [frozenset([i]) for i in range(len(join.operands))]
    equalities = [c for predicate in join.on for c in predicate.conjuncts() if c.equality_sides() is not None]
    while (tied := _tied(groups, join, equalities)) is not None:
        groups = [*(group for group in groups if group not in tied), tied[0] | tied[1]]
    return groups


def _tied(
    groups: list[frozenset[int]], join: Join, equalities: list[Expr]
) -> tuple[frozenset[int], frozenset[int]] | None:
    """Two groups that an equality ties."""
    columns = {group: frozenset(id for i in group for id in join.operands[i].columns) for group in groups}
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            if any(equates(c, columns[first], columns[second]) for c in equalities):
                return first, second
    return None
