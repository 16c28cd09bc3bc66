"""Left outer, semi and anti joins. Each is linear in its left input for a fixed right one, hence

    d(L op R) = dL op R'  +  L|K op R'  -  L|K op R,     K = the keys that dR touches

with R' the right contents at the new time, R at the old, and L|K the old left rows with a key in K.
A full join is the left join plus the null-extended anti join the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dbt_incremental_dd.differential.join import Equality, split_condition
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Map, OuterJoin, SemiJoin, Union

Kind = Literal["left", "semi", "anti"]


@dataclass(frozen=True)
class LeftLinearJoin(Node):
    """``equalities`` give the keys by which either side is probed; without any, the other side is read whole.

    They are between sides of one type: a key of either side then stands for the very rows that match it.
    ``right_types`` are the SQL types of the right columns, for rows without a match.
    """

    kind: Kind
    left: Node
    right: Node
    equalities: tuple[Equality, ...]
    residual: tuple[Expr, ...]
    right_types: tuple[tuple[Id, str], ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.left.columns + (self.right.columns if self.kind == "left" else ())


SqlTypes = Mapping[Id, str]
"""SQL types of the columns of both sides."""


def plan_semi_join(node: SemiJoin, types: SqlTypes) -> LeftLinearJoin:
    """A semi or anti join."""
    return _plan("anti" if node.anti else "semi", node.left, node.right, node.on, types)


def plan_outer_join(node: OuterJoin, types: SqlTypes) -> Node:
    """A left join; a full join as the union of a left and an anti join."""
    left = _plan("left", node.left, node.right, node.on, types)
    if node.kind == "left":
        return left
    unmatched = _plan("anti", node.right, node.left, node.on, types)
    nulls = {id: Expr(f"CAST(NULL AS {types[id]})") for id in node.left.columns}
    extended = Map(unmatched, tuple((f"{id}_f", nulls.get(id, Expr.column(id))) for id in node.columns))
    return Union((left, extended), node.columns)


def _plan(kind: Kind, left: Node, right: Node, on: tuple[Expr, ...], types: SqlTypes) -> LeftLinearJoin:
    found, rest = split_condition(on, frozenset(left.columns), frozenset(right.columns))
    alike = tuple(e for e in found if _same_type(e, types))
    others = tuple(_as_predicate(e) for e in found if e not in alike)
    right_types = tuple((id, types[id]) for id in right.columns)
    return LeftLinearJoin(kind, left, right, equalities=alike, residual=rest + others, right_types=right_types)


def _same_type(e: Equality, types: SqlTypes) -> bool:
    left, right = e.left.as_column, e.right.as_column
    return left is None or right is None or types[left] == types[right]


def _as_predicate(e: Equality) -> Expr:
    return Expr(f"({e.left.sql}) {'<=>' if e.null_safe else '='} ({e.right.sql})")
