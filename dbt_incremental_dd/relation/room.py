"""What the driver has room for, and how much rows take of it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import NESTED
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.untrusted.limits import machine_memory

_SHARE = 16
"""The part of the machine's memory that one read may take: a sixteenth."""
_SHARE_OF_PLAN, _SHARE_OF_PLANS = 8, 4
"""The parts that all reads of one plan may take, and those of all plans at once: an eighth and a quarter. Joins and
groups take more than half as much again."""
_TEXT_BYTES, _ELEMENTS = 32, 8
"""Of a text, and of an array or a map, as far as is known."""
_DECODED = 4
"""Bytes in memory for each byte of a file: nested values may be of any length."""


def room() -> float:
    """The bytes of one read of many rows."""
    return machine_memory() / _SHARE


class _Room:
    """Memory that the plans of a process share, in whatever threads they run."""

    def __init__(self) -> None:
        self._taken = 0.0
        self._changed = threading.Condition()

    @contextmanager
    def taking(self, amount: float) -> Iterator[bool]:
        """Whether one plan may read so many bytes. If so, waits until they are free, and holds them until the end.
        A plan takes room once, and waits for no other plan while it holds some: so none waits forever. What is no
        number gets none."""
        memory = machine_memory()
        if not amount <= memory / _SHARE_OF_PLAN:
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
"""The room of this process."""


def table_bytes(rows: int, schema: Schema) -> float:
    """About how much memory so many rows take in Arrow's tables; infinite where Arrow does not read them. No rows take
    none, of whatever types."""
    return rows * sum(map(_width, schema)) if rows else 0.0


def files_bytes(files: Sequence[DataFile], schema: Schema) -> float:
    """The same of all rows of files that are stored with these columns, and perhaps with others."""
    found = table_bytes(total_rows(files), schema)
    if not any(isinstance(column.type, NESTED) for column in schema):
        return found
    return max(found, _DECODED * sum(file.bytes for file in files))


def _width(column: Column) -> float:
    """Bytes of a value."""
    kind = arrow_type(column.type)
    return math.inf if kind is None else _bytes(kind)


def _bytes(kind: pa.DataType) -> float:
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return float(kind.bit_width) / 8
    if not pa.types.is_nested(kind):
        return _TEXT_BYTES
    parts = sum(_bytes(kind.field(number).type) for number in range(kind.num_fields))
    return parts if pa.types.is_struct(kind) else _ELEMENTS * parts
