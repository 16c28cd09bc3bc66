"""Rows joined with what a generator makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class FlatMap(Node):
    """Each row joined with the rows that ``generator`` (explode, inline, ...) makes of it.

    ``outer`` keeps a row without any as one row of NULLs.
    """

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True
    passes_columns: ClassVar[bool] = True

    input: Node
    generator: Expr
    outer: bool
    outputs: tuple[Id, ...]

    def __post_init__(self) -> None:
        require(self, self.generator.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns + self.outputs

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.generator,)
