"""The first rows of each group."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Order:
    """One ORDER BY item; ``nulls_first`` is explicit."""

    expr: Expr
    descending: bool
    nulls_first: bool

    @property
    def sql(self) -> str:
        """As text, for ORDER BY."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expr.sql} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    @property
    def reversed(self) -> Order:
        """The other way round."""
        return Order(self.expr, not self.descending, not self.nulls_first)


@dataclass(frozen=True)
class TopK(Node):
    """In each group of equal ``keys``, the rows from ``offset`` on, at most ``limit``, in the order of ``order``.

    Ties are broken by all columns, so that the answer is one and the same every time.
    """

    input: Node
    keys: tuple[Id, ...]
    order: tuple[Order, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        require(self, set(self.keys), self.input.columns)
        for item in self.order:
            require(self, item.expr.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns
