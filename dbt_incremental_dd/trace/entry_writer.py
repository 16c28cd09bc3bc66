"""A commit's entry as a file, as the Delta protocol has it, written without reading the table.

Sources: Delta transaction log protocol, "Actions"; delta-rs, whose entries these equal.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from deltalake import CommitProperties
from deltalake.transaction import AddAction, RemoveAction

from dbt_incremental_dd.storage.exclusive import create
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import is_remote
from dbt_incremental_dd.trace.entries import entry_path
from dbt_incremental_dd.version import version


def entry_lines(actions: Sequence[AddAction | RemoveAction], properties: CommitProperties) -> Iterator[dict[str, Any]]:
    """The commit's information, its files, and its transactions: an object for each line."""
    yield {
        "commitInfo": {
            "timestamp": int(time.time() * 1000),
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": "[]"},
            "engineInfo": f"dbt-incremental-dd:{version}",
            "txnId": str(uuid.uuid4()),
            **(properties.custom_metadata or {}),
        }
    }
    for action in actions:
        yield {"add": _added(action)} if isinstance(action, AddAction) else {"remove": _removed(action)}
    for one in properties.app_transactions or ():
        yield {"txn": {"appId": one.app_id, "version": one.version}}


def _added(action: AddAction) -> dict[str, Any]:
    return {
        "path": action.path,
        "partitionValues": {},
        "size": action.size,
        "modificationTime": action.modification_time,
        "dataChange": action.data_change,
        "stats": action.stats,
    }


def _removed(action: RemoveAction) -> dict[str, Any]:
    return {
        "path": action.path,
        "dataChange": action.data_change,
        "deletionTimestamp": action.deletion_timestamp,
        "extendedFileMetadata": False,
        "size": action.size,
    }


def write_entry(uri: str, number: int, lines: Iterable[dict[str, Any]], options: Mapping[str, str]) -> str | None:
    """Writes entry ``number`` of a log. Returns its entity tag, empty on a local disk; None if there is one already, or
    if the disk cannot create files so. Raises OSError where an object store does not tell what has become of it."""
    data = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()
    path = entry_path(uri, number)
    if is_remote(uri):
        objects, name = objects_of(path, options)
        return objects.create(name, data)
    try:
        return "" if create(path, data) else None
    except OSError:
        return None
