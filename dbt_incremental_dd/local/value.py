"""What an expression evaluates to on the driver, and how it gives up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dbt_incremental_dd.core.types import Type


class NotExact(Exception):
    """What Arrow computes might not be what Spark does: it is left to Spark."""


@dataclass(frozen=True)
class Value:
    """Values of a column, or one constant. ``type``: Spark's; VOID is that of NULL itself."""

    data: pa.ChunkedArray | pa.Scalar
    type: Type


class Constants(Protocol):
    """Values of expressions without columns, as a session has them."""

    @property
    def has_usual_types(self) -> bool:
        """Whether the session gives values and types as Spark does by default."""

    @property
    def time_zone(self) -> str:
        """The session's time zone, by the name that it was set with."""

    def value_of(self, sql: str) -> Value:
        """The expression's value. Raises NotExact if it has none, such as that of a division by zero."""
