"""Rows that have a match, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class SemiJoin(Node):
    """Left rows that have a match on the right; with ``anti``, those that have none."""

    is_linear: ClassVar[bool] = True
    passes_columns: ClassVar[bool] = True

    anti: bool
    left: Node
    right: Node
    on: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for predicate in self.on:
            require(self, predicate.refs, self.left.columns + self.right.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.left.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.on
