"""The entry that a change of an open Delta table becomes: its actions, in the protocol's order.

Source: the Delta transaction log protocol. Features of readers come with what needs them: a table from which no row was
ever deleted is read by whoever reads Delta tables at all.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.open_table.table import POSITION, TableChange, TableFile, TableVersion
from dbt_incremental_dd.trace.actions import json_bound
from dbt_incremental_dd.version import version as own_version

UPPER, VERSION = "dd:upper", "dd:version"
"""Transactions: the time before which the table has everything, and the last version that is ours."""
FIRST = "dd:first"
"""A file's tag: the position of its first row."""
SORTED = "dbt_incremental_dd.sorted_by"
RETENTIONS = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")
LEAST_RETAINED = 604_800_000
"""Milliseconds; Delta's default."""
_VECTORS, _NTZ = "deletionVectors", "timestampNtz"
_ALWAYS = {"delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true"}


def entry_of(
    name: str,
    before: TableVersion | None,
    change: TableChange,
    marked: Mapping[str, tuple[int, Mapping[str, Any]]],
    *,
    number: int,
    at: Time,
) -> Iterator[dict[str, Any]]:
    """The entry of version ``number``, whose time is ``at`` (ms): an object for each line.

    ``marked``: by a file's path, how many of its rows are deleted, and the vector that says which.
    """
    now, touched = int(time.time() * 1000), [file for file in files_of(before) if file.data.path in marked]
    yield {
        "commitInfo": {
            "inCommitTimestamp": at,
            "timestamp": at,
            "operation": "MERGE" if change.changes_rows else "OPTIMIZE",
            "operationParameters": {},
            "isBlindAppend": False,
            "engineInfo": f"dbt-incremental-dd:{own_version}",
            "txnId": str(uuid.uuid4()),
        }
    }
    yield from _head(name, before, change)
    removed = list(files_of(before)) if change.replaces is not None else [*change.went, *touched]
    for file in removed:
        yield {"remove": _removed(file, now, changes_rows=change.changes_rows)}
    for file in touched:
        _, vector = marked[file.data.path]
        yield {"add": _added(file.data, now, vector, changes_rows=change.changes_rows)}
    for data in change.came:
        yield {"add": _added(data, now, None, changes_rows=change.changes_rows)}
    for data in change.changes:
        yield {"cdc": {"path": data.path, "partitionValues": {}, "size": data.bytes, "dataChange": False}}
    yield {"txn": {"appId": UPPER, "version": change.upper, "lastUpdated": now}}
    yield {"txn": {"appId": VERSION, "version": number, "lastUpdated": now}}


def files_of(version: TableVersion | None) -> Sequence[TableFile]:
    """A version's files; of none there are none."""
    return () if version is None else version.files


def _head(name: str, before: TableVersion | None, change: TableChange) -> Iterator[dict[str, Any]]:
    """The protocol and the columns, where they are others than before. The first vectors come with the feature."""
    schema = change.replaces or (before.schema if before is not None else None)
    assert schema is not None
    sorted_by = change.sorted_by if change.replaces is not None or before is None else before.sorted_by
    readers = features_of(before, change, schema)
    is_retained = before is not None and before.retained == max(change.retained, LEAST_RETAINED)
    if change.replaces is None and is_retained and before is not None and readers == before.features:
        return
    protocol: dict[str, Any] = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    if readers:
        protocol["readerFeatures"] = list(readers)
    protocol["writerFeatures"] = [*readers, "changeDataFeed", "inCommitTimestamp"]
    configuration = {**_ALWAYS, SORTED: json.dumps(sorted_by)}
    configuration |= dict.fromkeys(RETENTIONS, f"interval {max(change.retained, LEAST_RETAINED) // 1000} seconds")
    if _VECTORS in readers:
        configuration["delta.enableDeletionVectors"] = "true"
    yield {"protocol": protocol}
    yield {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
            "name": name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema.to_json(),
            "partitionColumns": [],
            "configuration": configuration,
            "createdTime": change.upper - 1,
        }
    }


def features_of(before: TableVersion | None, change: TableChange, schema: Schema) -> tuple[str, ...]:
    """What readers have to know after the change. Once there, a feature stays: former versions have it."""
    needed = {_NTZ} if '"timestamp_ntz"' in schema.to_json() else set()
    needed |= {_VECTORS} if change.gone else set()
    return tuple(sorted({*needed, *(before.features if before is not None else ())}))


def _stats(data: DataFile, *, is_tight: bool) -> str:
    bounds = {name: pair for name, pair in data.bounds.items() if name != POSITION}
    return json.dumps(
        {
            "numRecords": data.rows,
            "tightBounds": is_tight,
            "minValues": {name: json_bound(low) for name, (low, _) in bounds.items()},
            "maxValues": {name: json_bound(high) for name, (_, high) in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


def _added(data: DataFile, now: int, vector: Mapping[str, Any] | None, *, changes_rows: bool) -> dict[str, Any]:
    action = {
        "path": data.path,
        "partitionValues": {},
        "size": data.bytes,
        "modificationTime": now,
        "dataChange": changes_rows,
        "stats": _stats(data, is_tight=vector is None),
        "tags": {FIRST: str(data.bounds[POSITION][0])},
    }
    return action if vector is None else {**action, "deletionVector": dict(vector)}


def _removed(file: TableFile, now: int, *, changes_rows: bool) -> dict[str, Any]:
    action = {
        "path": file.data.path,
        "deletionTimestamp": now,
        "dataChange": changes_rows,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": file.data.bytes,
        "stats": _stats(file.data, is_tight=file.vector is None),
    }
    return action if file.vector is None else {**action, "deletionVector": dict(file.vector)}
