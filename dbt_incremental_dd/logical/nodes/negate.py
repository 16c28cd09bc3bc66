"""Multiplicities negated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Negate(Node):
    """The multiset with all multiplicities negated. Only below a Union that a Threshold closes."""

    by_rows: ClassVar[bool] = True
    passes_filters: ClassVar[bool] = True

    input: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns
