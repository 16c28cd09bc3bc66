"""What this machine knows of a log in object storage: one version of it, in a file beside the copies of its files.

It is an advance on reading the log: whoever uses it asks the store whether the version is still there, and what came
after it. A damaged file is as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.storage import checked_file
from dbt_incremental_dd.trace.actions import json_bound, typed_bounds

_NAME = "log.json"
_FORMAT = 1


@dataclass(frozen=True)
class Snapshot:
    """One version of a log. ``tag``: its entry's entity tag."""

    name: str
    uri: str
    version: int
    tag: str
    schema: Schema
    moved: Mapping[str, int | None]
    files: tuple[DataFile, ...]


def write_snapshot(folder: str, snapshot: Snapshot) -> None:
    """Replaces the one in a folder of this machine. Where that fails, there is an older one, or none."""
    files = [
        [f.path, f.rows, f.bytes, f.first, f.last, f.min_diff, f.max_diff, _plain(f.bounds)] for f in snapshot.files
    ]
    parts = {
        "format": _FORMAT,
        "name": snapshot.name,
        "uri": snapshot.uri,
        "version": snapshot.version,
        "tag": snapshot.tag,
        "schema": snapshot.schema.to_json(),
        "moved": dict(snapshot.moved),
        "files": files,
    }
    checked_file.write(f"{folder}/{_NAME}", json.dumps(parts, separators=(",", ":")).encode())


def read_snapshot(folder: str) -> Snapshot | None:
    """The one in a folder; None if there is none, or it is damaged."""
    try:
        parts = json.loads(checked_file.read(f"{folder}/{_NAME}") or b"")
        schema = Schema.from_json(parts["schema"])
        if parts["format"] != _FORMAT:
            return None
        return Snapshot(
            name=parts["name"],
            uri=parts["uri"],
            version=parts["version"],
            tag=parts["tag"],
            schema=schema,
            moved=parts["moved"],
            files=tuple(_file(entry, schema) for entry in parts["files"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def _plain(bounds: Mapping[str, tuple[Any, Any]]) -> dict[str, list[Any]]:
    return {name: [json_bound(low), json_bound(high)] for name, (low, high) in bounds.items()}


def _file(entry: list[Any], schema: Schema) -> DataFile:
    path, rows, size, first, last, low, high, bounds = entry
    return DataFile(path, rows, size, first, last, low, high, typed_bounds(bounds, schema))
