"""The records of manifests and of lists of manifests (Iceberg's specification, version 2, "Manifests", "Snapshots")."""

from __future__ import annotations

from typing import Any


def _field(name: str, kind: Any, number: int, *, optional: bool = False) -> dict[str, Any]:
    found = {"name": name, "type": ["null", kind] if optional else kind, "field-id": number}
    return {**found, "default": None} if optional else found


def _by_column(name: str, number: int, key: int, value: int, kind: str) -> dict[str, Any]:
    """A value for each of some columns: Avro's own maps have texts as keys only."""
    items = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [_field("key", "int", key), _field("value", kind, value)],
    }
    return _field(name, {"type": "array", "logicalType": "map", "items": items}, number, optional=True)


_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", {"type": "record", "name": "r102", "fields": []}, 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _by_column("value_counts", 109, 119, 120, "long"),
        _by_column("null_value_counts", 110, 121, 122, "long"),
        _by_column("lower_bounds", 125, 126, 127, "bytes"),
        _by_column("upper_bounds", 128, 129, 130, "bytes"),
        _field("referenced_data_file", "string", 143, optional=True),
    ],
}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        _field("status", "int", 0),
        _field("snapshot_id", "long", 1, optional=True),
        _field("sequence_number", "long", 3, optional=True),
        _field("file_sequence_number", "long", 4, optional=True),
        _field("data_file", _FILE, 2),
    ],
}
"""Of a manifest: a data file, or a file of deleted positions. No column is one of partitions."""
MANIFEST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _field("added_snapshot_id", "long", 503),
        _field("added_files_count", "int", 504),
        _field("existing_files_count", "int", 505),
        _field("deleted_files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
    ],
}
"""Of a snapshot's list of manifests."""
