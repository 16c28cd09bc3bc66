"""What the driver has room for, and how much rows take of it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.untrusted.limits import machine_memory

_SHARE = 16
"""Of the machine's memory, for one read."""
_SHARE_OF_PLAN, _SHARE_OF_PLANS = 8, 4
"""Of the machine's memory, for one and for all at once: joins and groups take more than half as much again."""
_TEXT_BYTES = 32
"""Of a text, as far as is known."""


def room() -> float:
    """The bytes of one read of many rows."""
    return machine_memory() / _SHARE


class _Room:
    """For plans that read everything, in all threads of the process together."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._changed = threading.Condition()

    @contextmanager
    def taking(self, amount: float) -> Iterator[bool]:
        """Whether one plan may read so many bytes; then they are taken until the end, once others have left enough.
        Who has taken some takes no more, nor waits for others in any other way."""
        memory = machine_memory()
        if amount > memory / _SHARE_OF_PLAN:
            yield False
            return
        with self._changed:
            self._changed.wait_for(lambda: self._taken + amount <= memory / _SHARE_OF_PLANS)
            self._taken += amount
        try:
            yield True
        finally:
            with self._changed:
                self._taken -= amount
                self._changed.notify_all()


FOR_PLANS = _Room()


def row_bytes(schema: Schema) -> float:
    """About how much memory a row takes in Arrow's tables; infinite where Arrow does not read it."""
    return sum(map(_width, schema))


def _width(column: Column) -> float:
    """Bytes of a value."""
    kind = arrow_type(column.type)
    if kind is None:
        return math.inf
    return kind.bit_width / 8 if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) else _TEXT_BYTES
