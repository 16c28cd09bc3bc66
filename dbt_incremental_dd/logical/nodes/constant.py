"""What no input can change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.logical.node import Id, Node


@dataclass(frozen=True)
class Constant(Node):
    """A relation that no input can change: ``sql`` is a whole query over nothing (VALUES, SELECT 1, range(10))."""

    by_rows: ClassVar[bool] = True

    sql: str
    ids: tuple[Id, ...]

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids
