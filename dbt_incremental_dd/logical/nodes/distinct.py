"""Each row once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Distinct(Node):
    """Each row once."""

    passes_filters: ClassVar[bool] = True

    input: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns


@dataclass(frozen=True)
class Domain(Distinct):
    """The values that a subquery is computed for: a Distinct of a Map of ``source``.

    ``source`` stands in the plan once more, on the left of the join that reads the subquery's answer by these values.
    Only values of rows that get that far are needed, so a filter over that side may restrict ``source`` here, too.
    """

    @property
    def source(self) -> Node:
        """Where the values come from."""
        return self.input.inputs[0]
