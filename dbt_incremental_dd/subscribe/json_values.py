"""Values for JSON. Exact numbers that JSON's might round become strings."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.subscribe.calendar import iso_text


def json_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as mappings from column names to JSON values."""
    return _rows(table, json_column)


def python_rows(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as mappings from column names to Python values, as ``python_values`` returns them."""
    return _rows(table, python_values)


def _rows(table: pa.Table | pa.RecordBatch, values: Callable[[Any], list[Any]]) -> list[dict[str, Any]]:
    columns = [values(table.column(number)) for number in range(table.num_columns)]
    names = table.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def json_column(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """One column's values for JSON."""
    values = python_values(column)
    if pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_boolean(column.type):
        return values
    return [json_value(value) for value in values]


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """One column's values. If a date or time is out of Python's range, all dates and times of the column become ISO
    8601 strings, with a sign and six digits for years that need more than four."""
    try:
        found: list[Any] = column.to_pylist()
        return found
    except (OverflowError, ValueError):
        return [_python(value) for value in column]


def _python(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return iso_text(value)
    if pa.types.is_map(kind):
        return [(_python(key), _python(one)) for key, one in ((pair["key"], pair["value"]) for pair in value.values)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_python(one) for one in value.values]
    if pa.types.is_struct(kind):
        return {name: _python(one) for name, one in value.items()}
    if pa.types.is_duration(kind):
        return f"{value.value} {kind.unit}"
    return value.as_py()


def json_value(value: Any) -> Any:
    """Decimals with fractional digits, non-finite floats, times (ISO 8601) and bytes (base64) become strings, maps
    become lists of pairs."""
    for kind, form in _CONVERSIONS:
        if isinstance(value, kind):
            return form(value)
    return value


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _timestamp(value: datetime.datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (float, _float),
    (Decimal, lambda value: str(value) if value.as_tuple().exponent else int(value)),
    (datetime.datetime, _timestamp),
    ((datetime.date, datetime.time), lambda value: value.isoformat()),
    (datetime.timedelta, str),
    (bytes, lambda value: base64.b64encode(value).decode()),
    (dict, lambda value: {str(key): json_value(one) for key, one in value.items()}),
    ((list, tuple), lambda value: [json_value(one) for one in value]),
)
