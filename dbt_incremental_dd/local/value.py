"""What an expression evaluates to on the driver."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dbt_incremental_dd.core.types import Type


class ForSpark(Exception):
    """The expression, or a value in it, is not among those that are evaluated on the driver."""


@dataclass(frozen=True)
class Value:
    """Values of a column, or one constant. ``type``: Spark's; VOID is that of NULL itself."""

    data: pa.ChunkedArray | pa.Scalar
    type: Type
