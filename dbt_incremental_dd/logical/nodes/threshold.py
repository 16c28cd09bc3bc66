"""Rows of positive multiplicity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Threshold(Node):
    """Rows of positive multiplicity, with that multiplicity."""

    passes_filters: ClassVar[bool] = True

    input: Node

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns
