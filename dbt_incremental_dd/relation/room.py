"""What the driver has room for, and how much rows take of it."""

from __future__ import annotations

import math

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.untrusted.limits import machine_memory

_SHARE = 16
"""Of the machine's memory: joins and groups take as much again, and several models may be built at once."""
_TEXT_BYTES = 32
"""Of a text, as far as is known."""


def room() -> float:
    """The bytes of all that is read for one model, where everything is read."""
    return machine_memory() / _SHARE


def row_bytes(schema: Schema) -> float:
    """About how much memory a row takes in Arrow's tables; infinite where Arrow does not read it."""
    return sum(map(_width, schema))


def _width(column: Column) -> float:
    """Bytes of a value."""
    kind = arrow_type(column.type)
    if kind is None:
        return math.inf
    return kind.bit_width / 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else _TEXT_BYTES
