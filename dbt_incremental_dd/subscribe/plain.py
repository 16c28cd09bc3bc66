"""Values as JSON has them: exact ones that JSON's numbers may lose are texts."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, each by its columns' names."""
    columns = [plain_values(table.column(number)) for number in range(table.num_columns)]
    names = table.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def plain_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """One column's values."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        return values
    return [plain(value) for value in values]


def plain(value: Any) -> Any:
    """Decimals with digits after the point, floats that are no numbers, times (ISO 8601) and bytes (base64) as texts;
    maps as lists of pairs."""
    for kind, form in _FORMS:
        if isinstance(value, kind):
            return form(value)
    return value


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _timestamp(value: datetime.datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (float, _float),
    (Decimal, lambda value: str(value) if value.as_tuple().exponent else int(value)),
    (datetime.datetime, _timestamp),
    ((datetime.date, datetime.time), lambda value: value.isoformat()),
    (datetime.timedelta, str),
    (bytes, lambda value: base64.b64encode(value).decode()),
    (dict, lambda value: {str(key): plain(one) for key, one in value.items()}),
    ((list, tuple), lambda value: [plain(one) for one in value]),
)
