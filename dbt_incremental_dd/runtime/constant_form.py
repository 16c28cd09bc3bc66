"""The value of an expression without columns as JSON, and back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.types import from_json
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.relation.lazy_session import Dialect


def constant_key(dialect: Dialect, sql: str) -> str:
    """What it is found by."""
    return json.dumps([*dialect, sql])


def constant_form(value: Value) -> list[Any]:
    """The type as Spark's JSON, and the value as an Arrow stream."""
    data = value.data
    assert isinstance(data, pa.Scalar)
    batch = pa.record_batch([pa.array([data.as_py()], data.type)], ["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return [value.type.json, base64.b64encode(sink.getvalue()).decode()]


def constant_of(stored: list[Any]) -> Value | None:
    """The value of that form; None if it is damaged."""
    try:
        dtype, data = stored
        with pa.ipc.open_stream(base64.b64decode(data)) as reader:
            return Value(reader.read_all()["value"][0], from_json(dtype))
    except (ValueError, TypeError, pa.ArrowException):
        return None
