"""What a manifest says of its collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.log import Log

DEFAULT_RETAIN = 86_400_000


def retained(manifest: Mapping[str, Any]) -> int:
    """Ms of history that the collection keeps."""
    return int(manifest.get("retain_history", DEFAULT_RETAIN))


def change_of(
    before: Mapping[str, Any], strategy: str, input_rows: int | None, counts: tuple[int, int], seconds: float
) -> dict[str, Any]:
    """What a manifest says of the change that it comes with, and of the rows that there are after it (with their
    multiplicity; None where that is not known). ``counts``: rows added and removed; ``before`` is empty where there
    was nothing."""
    added, removed = counts
    rows = before.get("rows") if before else 0
    return {
        "rows": None if rows is None else rows + added - removed,
        "change": {
            "strategy": strategy,
            "input_rows": input_rows,
            "rows_added": added,
            "rows_removed": removed,
            "seconds": round(seconds, 3),
        },
    }


def columns_of(place: Place, log: Log) -> Schema:
    """The columns that users see of a collection, as of that version of its log."""
    return visible_schema(place.read_manifest(log.manifest), log)


def visible_schema(manifest: Mapping[str, Any], log: Log) -> Schema:
    """The columns that users see of a collection; those called ``dd_...`` are its own."""
    text = manifest.get("schema")
    if isinstance(text, str):
        return Schema.from_json(text)
    return Schema(tuple(column for column in log.schema if not column.name.startswith("dd_")))
