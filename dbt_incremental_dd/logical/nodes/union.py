"""The sum of multisets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes.map import projected


@dataclass(frozen=True)
class Union(Node):
    """The sum of multisets, column by position.

    ``widens``: the inputs' types may differ, and are widened as Spark's UNION ALL does.
    """

    by_rows: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    operands: tuple[Node, ...]
    ids: tuple[Id, ...]
    widens: bool = True

    def __post_init__(self) -> None:
        if any(len(operand.columns) != len(self.ids) for operand in self.operands):
            raise ValueError("Union needs inputs of as many columns as it has")

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids

    def needed_columns(self, wanted: frozenset[Id]) -> tuple[frozenset[Id], ...]:
        return tuple(frozenset(columns) for columns in self._kept(wanted))

    def pruned(self, wanted: frozenset[Id], inputs: tuple[Node, ...]) -> Union:
        operands = (projected(made, columns) for made, columns in zip(inputs, self._kept(wanted), strict=True))
        return Union(tuple(operands), tuple(id for id in self.ids if id in wanted) or self.ids[:1], self.widens)

    def _kept(self, wanted: frozenset[Id]) -> tuple[tuple[Id, ...], ...]:
        """The columns of each input that those that are wanted stand for; one stays where there would be none."""
        kept = [i for i, id in enumerate(self.ids) if id in wanted] or [0]
        return tuple(tuple(operand.columns[i] for i in kept) for operand in self.operands)
