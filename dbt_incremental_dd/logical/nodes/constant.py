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

    @staticmethod
    def one_row(id: Id) -> Constant:
        """One row, of one INT: what is selected from where there is no FROM."""
        return Constant(_ONE_ROW, (id,))

    @property
    def is_one_row(self) -> bool:
        """Whether it is ``one_row``, for which nobody needs to be asked."""
        return self.sql == _ONE_ROW

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids


_ONE_ROW = "SELECT 1 AS one"
