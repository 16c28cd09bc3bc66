"""A place in the order of changes: fields that are compared one after the other, NULL the least.

It is stored as one struct, and computed with as columns. Without fields there is no order, and the struct is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_incremental_dd.core.schema import Column
from dbt_incremental_dd.core.types import INTEGER, Field, Struct
from dbt_incremental_dd.relation.relation import Relation

POSITION = "dd_position"
"""STRUCT, hidden: the place of a row's last change in the order of changes."""


@dataclass(frozen=True)
class EventPosition:
    """``fields``: in the order in which they are compared."""

    fields: tuple[Field, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields as columns."""
        return tuple(f"dd_p{place}" for place in range(len(self.fields)))

    @property
    def type(self) -> Struct:
        """What is stored."""
        return Struct(self.fields or (Field("dd_none", INTEGER),))

    @property
    def stored(self) -> tuple[Column, ...]:
        """The column that is read of stored rows, if there is an order."""
        return (Column(POSITION, self.type),) if self.fields else ()

    def packed(self, rows: Relation) -> Relation:
        """The rows as they are stored."""
        return rows.pack(POSITION, self.type, self.columns)

    def unpacked(self, rows: Relation) -> Relation:
        """Stored rows with the fields as columns."""
        return rows.unpack(POSITION, self.columns) if self.fields else rows

    def is_later(self, than: Sequence[str], *, or_equal: bool) -> str:
        """SQL: whether it is behind the position in these columns. NULL is false."""
        found = "TRUE" if or_equal else "FALSE"
        for own, other in reversed(list(zip(self.columns, than, strict=True))):
            later = f"{own} > {other} OR {own} IS NOT NULL AND {other} IS NULL"
            found = f"({later} OR {own} <=> {other} AND {found})"
        return found
