"""The table's metadata, as its files have it (Iceberg's specification, "Table Metadata and Snapshots")."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.open_table.iceberg.columns import (
    POSITION_ID,
    Fields,
    fields_of,
    name_mapping,
    numbers_of,
    shape,
)

Metadata = Mapping[str, Any]
VERSION = 2
"""Of the specification."""
UPPER = "dd:upper"
"""In a snapshot's summary: the time (ms) before which the table has everything. Snapshots of others have none."""
_SCHEMA, _SORTED = "dbt_incremental_dd.schema", "dbt_incremental_dd.sorted_by"
_RETAINED = "history.expire.max-snapshot-age-ms"
_MAPPING = "schema.name-mapping.default"


def base_of(metadata: Metadata | None, uri: str, schema: Schema) -> Metadata | None:
    """What a table with these columns continues from, in the folder ``uri``. None where it is a new one, without former
    snapshots: those of another folder are not found there, and one whose column has another type by now would not be
    read as it was."""
    if metadata is None or metadata.get("format-version") != VERSION or metadata.get("location") != uri:
        return None
    fields = fields_of(schema, _latest(metadata).values(), metadata["last-column-id"])
    return metadata if _agree([*metadata["schemas"], {"fields": fields}]) else None


def _agree(schemas: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no column is of one type in one of them, and of another type in another one."""
    shapes: dict[str, Any] = {}
    return all(
        shapes.setdefault(field["name"], shape(field["type"])) == shape(field["type"])
        for schema in schemas
        for field in schema["fields"]
    )


def _latest(metadata: Metadata | None) -> dict[str, Mapping[str, Any]]:
    """All columns that the table has had, by their names."""
    schemas = sorted([] if metadata is None else metadata["schemas"], key=lambda schema: schema["schema-id"])
    return {field["name"]: field for schema in schemas for field in schema["fields"]}


def fields_after(base: Metadata | None, schema: Schema) -> Fields:
    """The columns of a schema, in a table that continues from ``base``."""
    return fields_of(schema, _latest(base).values(), POSITION_ID if base is None else base["last-column-id"])


def with_schema(base: Metadata | None, uri: str, schema: Schema, sorted_by: Sequence[str]) -> dict[str, Any]:
    """The metadata with these columns; without a ``base`` that of a new table without a snapshot."""
    fields = list(fields_after(base, schema))
    had = [] if base is None else list(base["schemas"])
    number = next((one["schema-id"] for one in had if one["fields"] == fields), None)
    if number is None:
        number = max((one["schema-id"] for one in had), default=-1) + 1
        had.append({"type": "struct", "schema-id": number, "fields": fields})
    made: dict[str, Any] = {**(_new(uri) if base is None else base), "schemas": had, "current-schema-id": number}
    made["last-column-id"] = max(made["last-column-id"], *numbers_of(fields).values())
    made["properties"] = {
        **made["properties"],
        _SCHEMA: schema.to_json(),
        _SORTED: json.dumps(list(sorted_by)),
        _MAPPING: json.dumps(name_mapping(_latest(made).values())),
    }
    return made


def _new(uri: str) -> dict[str, Any]:
    return {
        "format-version": VERSION,
        "table-uuid": str(uuid.uuid4()),
        "location": uri,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": POSITION_ID,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
    }


def with_snapshot(metadata: Metadata, snapshot: Mapping[str, Any], retained: int) -> dict[str, Any]:
    """The metadata with a snapshot, which is the current one, and without those that nobody can see any more as of a
    time at most ``retained`` ms before."""
    number, at = snapshot["snapshot-id"], snapshot["timestamp-ms"]
    refs = metadata.get("refs", {})
    main = refs.get("main", {})
    made = {
        **metadata,
        "last-sequence-number": snapshot["sequence-number"],
        "last-updated-ms": at,
        "current-snapshot-id": number,
        "refs": {**refs, "main": {**main, "snapshot-id": number, "type": "branch"}},
        "snapshots": [*metadata["snapshots"], snapshot],
        "snapshot-log": [*metadata["snapshot-log"], {"timestamp-ms": at, "snapshot-id": number}],
        "properties": {**metadata["properties"], _RETAINED: str(retained)},
    }
    return without_former(made, at - retained) or made


def without_former(metadata: Metadata, since: Time) -> dict[str, Any] | None:
    """The metadata without the snapshots that are not needed to see the table as of ``since`` (ms) or later, and that
    no branch or tag has; None where that are all."""
    log = metadata["snapshot-log"]
    shown = max((entry["timestamp-ms"] for entry in log if entry["timestamp-ms"] <= since), default=since)
    kept = {entry["snapshot-id"] for entry in log if entry["timestamp-ms"] >= shown}
    kept |= {ref["snapshot-id"] for ref in metadata.get("refs", {}).values()} | {metadata.get("current-snapshot-id")}
    kept |= {one["snapshot-id"] for one in metadata["snapshots"] if one["timestamp-ms"] > since}
    if all(one["snapshot-id"] in kept for one in metadata["snapshots"]):
        return None
    return {
        **metadata,
        "snapshots": [one for one in metadata["snapshots"] if one["snapshot-id"] in kept],
        "snapshot-log": [entry for entry in log if entry["snapshot-id"] in kept],
    }


def current_snapshot(metadata: Metadata) -> Mapping[str, Any] | None:
    """None where there is none."""
    number = metadata.get("current-snapshot-id")
    return next((one for one in metadata["snapshots"] if one["snapshot-id"] == number), None)


def number_of(metadata: Metadata) -> int:
    """Of the current snapshot: greater than those of all that came before; 0 where there is none."""
    return int((current_snapshot(metadata) or {}).get("sequence-number", 0))


def latest_time(metadata: Metadata) -> Time:
    """The last time at which the table was another one (ms)."""
    return max((entry["timestamp-ms"] for entry in metadata["snapshot-log"]), default=0)


def upper_of(metadata: Metadata) -> Time | None:
    """The time before which the table has everything (ms); None where its rows or columns are not what we wrote."""
    snapshot = current_snapshot(metadata)
    upper = (snapshot or {}).get("summary", {}).get(UPPER)
    if upper is None or metadata.get("format-version") != VERSION or fields_now(metadata) != _ours(metadata):
        return None
    return int(upper)


def _ours(metadata: Metadata) -> Fields:
    """The columns that we have written."""
    return fields_of(schema_of(metadata), fields_now(metadata), metadata["last-column-id"])


def fields_now(metadata: Metadata) -> Fields:
    """The table's columns."""
    number = metadata["current-schema-id"]
    found: dict[int, Fields] = {schema["schema-id"]: schema["fields"] for schema in metadata["schemas"]}
    return found[number]


def schema_of(metadata: Metadata) -> Schema:
    """The model's columns as they were written; none where the table does not say it."""
    text = metadata.get("properties", {}).get(_SCHEMA)
    return Schema(()) if text is None else Schema.from_json(text)


def sorted_by_of(metadata: Metadata) -> tuple[str, ...]:
    """The columns by which each file is sorted."""
    return tuple(json.loads(metadata.get("properties", {}).get(_SORTED, "[]")))


def retained_of(metadata: Metadata) -> int:
    """Milliseconds; 0 where the table does not say it as we do."""
    text = str(metadata.get("properties", {}).get(_RETAINED, ""))
    return int(text) if text.isdecimal() else 0


def statistics_of(metadata: Metadata) -> Iterator[str]:
    """The files of statistics that others have made."""
    for kind in ("statistics", "partition-statistics"):
        yield from (str(one["statistics-path"]) for one in metadata.get(kind) or ())
