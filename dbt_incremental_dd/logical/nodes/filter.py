"""The rows for which a predicate is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Filter(Node):
    """The rows for which ``predicate`` is true."""

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True
    passes_columns: ClassVar[bool] = True

    input: Node
    predicate: Expr

    def __post_init__(self) -> None:
        require(self, self.predicate.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.predicate,)
