"""Left and full joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class OuterJoin(Node):
    """``left``: left rows without a match are kept with NULLs; ``full``: the right's likewise.

    A right join is the left join of swapped inputs.
    """

    is_linear: ClassVar[bool] = True
    passes_columns: ClassVar[bool] = True

    kind: Literal["left", "full"]
    left: Node
    right: Node
    on: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for predicate in self.on:
            require(self, predicate.refs, self.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.left.columns + self.right.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.on
