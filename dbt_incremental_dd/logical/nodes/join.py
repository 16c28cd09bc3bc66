"""The inner join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Join(Node):
    """Inner join of any number of inputs: the rows of their product for which every predicate of ``on`` is true."""

    is_linear: ClassVar[bool] = True
    passes_columns: ClassVar[bool] = True

    operands: tuple[Node, ...]
    on: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for predicate in self.on:
            require(self, predicate.refs, self.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for operand in self.operands for id in operand.columns)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return self.on
