"""What a manifest says of its collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.log import Log

DEFAULT_RETAIN = 86_400_000


def retained(manifest: Mapping[str, Any]) -> int:
    """Ms of history that the collection keeps."""
    return int(manifest.get("retain_history", DEFAULT_RETAIN))


def visible_schema(manifest: Mapping[str, Any], log: Log) -> Schema:
    """The columns that users see of a collection; those called ``dd_...`` are its own."""
    text = manifest.get("schema")
    if isinstance(text, str):
        return Schema.from_json(text)
    return Schema(tuple(column for column in log.schema if not column.name.startswith("dd_")))
