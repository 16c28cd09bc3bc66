"""Projection, renaming and computed columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.expr import Expr, references
from dbt_incremental_dd.logical.node import Id, Node, require


@dataclass(frozen=True)
class Map(Node):
    """Each row becomes the row of ``outputs``: projection, renaming and computed columns in one."""

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    input: Node
    outputs: tuple[tuple[Id, Expr], ...]

    def __post_init__(self) -> None:
        for _, expr in self.outputs:
            require(self, expr.refs, self.input.columns)

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for id, _ in self.outputs)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return tuple(expr for _, expr in self.outputs)

    def needed_columns(self, wanted: frozenset[Id]) -> tuple[frozenset[Id], ...]:
        return (references(expr for _, expr in self._kept(wanted)),)

    def pruned(self, wanted: frozenset[Id], inputs: tuple[Node, ...]) -> Map:
        return Map(inputs[0], self._kept(wanted))

    def _kept(self, wanted: frozenset[Id]) -> tuple[tuple[Id, Expr], ...]:
        """One column stays where there would be none."""
        return tuple(output for output in self.outputs if output[0] in wanted) or self.outputs[:1]


def projected(node: Node, columns: tuple[Id, ...]) -> Node:
    """The node with just these of its columns, in this order."""
    return node if node.columns == columns else Map(node, tuple((id, Expr.column(id)) for id in columns))
