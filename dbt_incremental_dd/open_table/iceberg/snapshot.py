"""What a change becomes: its files of deleted positions, its manifests, and the snapshot that lists them."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.open_table.iceberg.columns import Fields
from dbt_incremental_dd.open_table.iceberg.deletes import data_file_of, deletes_as_file, remember
from dbt_incremental_dd.open_table.iceberg.files import described
from dbt_incremental_dd.open_table.iceberg.manifests import DATA, DELETES, Commit, Manifest, changed, list_as_file
from dbt_incremental_dd.open_table.iceberg.metadata import UPPER, Metadata, current_snapshot
from dbt_incremental_dd.open_table.table import TableChange
from dbt_incremental_dd.version import version as own_version


@dataclass(frozen=True)
class Snapshot:
    """``record``: as the metadata has it; ``manifests``: all that it lists; ``files``: what has to be written before it
    is visible, by URI."""

    record: Mapping[str, Any]
    manifests: tuple[Manifest, ...]
    files: Mapping[str, bytes]


def snapshot_of(
    metadata: Metadata, before: Sequence[Manifest], change: TableChange, schema: Schema, fields: Fields, at: Time
) -> Snapshot:
    """The snapshot after a change, whose time is ``at`` (ms). ``metadata``: with the change's columns, without the
    snapshot; ``before``: the manifests of the former one, where not all is written anew."""
    uri = metadata["location"]
    commit = Commit(uri, secrets.randbits(62) + 1, metadata["last-sequence-number"] + 1, _notes(metadata, fields))
    files: dict[str, bytes] = {}
    deletes = []
    for path, deleted in change.gone.items():
        one, data = deletes_as_file(uri, path, deleted)
        files[one["file_path"]] = data
        remember(one["file_path"], deleted)
        deletes.append(one)
    went = {f"{uri}/{file.data.path}" for file in change.went}
    touched = went | {f"{uri}/{path}" for path in change.gone}
    former = {
        path: entry["data_file"]
        for manifest in before
        if manifest.content == DELETES
        for path, entry in manifest.entries.items()
        if data_file_of(entry["data_file"]) in touched
    }
    came = [described(uri, file, schema, fields) for file in change.came]
    manifests: list[Manifest] = []
    for content, ours, theirs in ((DATA, came, went), (DELETES, deletes, former)):
        made, written = changed(commit, before, content, ours, theirs)
        manifests += made
        files |= written
    parent = current_snapshot(metadata)
    number = None if parent is None else parent["snapshot-id"]
    listed = f"{uri}/metadata/snap-{commit.snapshot}-1-{uuid.uuid4()}.avro"
    files[listed] = list_as_file(commit, number, manifests)
    record = {
        "snapshot-id": commit.snapshot,
        **({} if number is None else {"parent-snapshot-id": number}),
        "sequence-number": commit.sequence,
        "timestamp-ms": at,
        "manifest-list": listed,
        "summary": _summary(change, came, deletes, former, manifests),
        "schema-id": metadata["current-schema-id"],
    }
    return Snapshot(record, tuple(manifests), files)


def _notes(metadata: Metadata, fields: Fields) -> dict[str, str]:
    number = metadata["current-schema-id"]
    return {
        "schema": json.dumps({"type": "struct", "schema-id": number, "fields": list(fields)}),
        "schema-id": str(number),
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": "2",
    }


def _summary(
    change: TableChange,
    came: Sequence[Mapping[str, Any]],
    deletes: Sequence[Mapping[str, Any]],
    former: Mapping[str, Mapping[str, Any]],
    manifests: Sequence[Manifest],
) -> dict[str, str]:
    """What it says of itself: what was done, and how much there is."""
    data = [file for manifest in manifests if manifest.content == DATA for file in _files(manifest)]
    marks = [file for manifest in manifests if manifest.content == DELETES for file in _files(manifest)]
    counts = {
        "added-data-files": len(came),
        "added-records": _rows(came),
        "deleted-data-files": len(change.went),
        "deleted-records": sum(file.data.rows for file in change.went),
        "added-delete-files": len(deletes),
        "added-position-deletes": _rows(deletes),
        "removed-delete-files": len(former),
        "removed-position-deletes": _rows(former.values()),
    }
    totals = {
        "total-data-files": len(data),
        "total-records": _rows(data),
        "total-delete-files": len(marks),
        "total-position-deletes": _rows(marks),
        "total-equality-deletes": 0,
        "total-files-size": sum(file["file_size_in_bytes"] for file in (*data, *marks)),
    }
    told = {name: str(count) for name, count in counts.items() if count}
    told |= {name: str(count) for name, count in totals.items()}
    return {
        "operation": _operation(change),
        UPPER: str(change.upper),
        "engine-name": "dbt-incremental-dd",
        "engine-version": own_version,
        **told,
    }


def _operation(change: TableChange) -> str:
    if not change.changes_rows:
        return "replace"
    if change.replaces is not None or change.gone or change.went:
        return "overwrite" if change.came or change.gone or change.replaces is not None else "delete"
    return "append"


def _files(manifest: Manifest) -> Iterator[Mapping[str, Any]]:
    return (entry["data_file"] for entry in manifest.entries.values())


def _rows(files: Any) -> int:
    return sum(int(file["record_count"]) for file in files)
