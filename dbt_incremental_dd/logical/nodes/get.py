"""A stored collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Get(Node):
    """A stored collection. ``outputs`` pairs an id with the collection's column name."""

    by_rows: ClassVar[bool] = True

    collection: str
    outputs: tuple[tuple[Id, str], ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return tuple(id for id, _ in self.outputs)

    def pruned(self, wanted: frozenset[Id], inputs: tuple[Node, ...]) -> Get:
        return Get(self.collection, tuple(o for o in self.outputs if o[0] in wanted) or self.outputs[:1])
