"""Open tables as Delta tables: deletion vectors, change data feed, and the collection's times as those of commits.

Source: the Delta transaction log protocol.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import CommitConflict, ConfigError, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.lake.delta_log import DeltaLog, Head, VersionGone
from dbt_incremental_dd.lake.positions import file_text, positions, read_vector, vector_file, vectors_as_file
from dbt_incremental_dd.open_table.delta_entry import (
    FIRST,
    LEAST_RETAINED,
    RETENTIONS,
    SORTED,
    UPPER,
    VERSION,
    entry_of,
    features_of,
    files_of,
)
from dbt_incremental_dd.open_table.last_written import LastWritten
from dbt_incremental_dd.open_table.put import put
from dbt_incremental_dd.open_table.table import POSITION, POSITION_COLUMN, TableChange, TableFile, TableVersion
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.storage import durable, uploads
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.trace.actions import own_path, typed_bounds
from dbt_incremental_dd.trace.checkpoints import is_due
from dbt_incremental_dd.trace.entries import entry_path
from dbt_incremental_dd.trace.entry_writer import write_entry
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyroaring import BitMap64

_VECTOR_NAME = 20
"""Characters of the name of a vector's file in the table's own folder."""
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_OTHER_TYPES = re.compile(r'"(void|variant|calendarinterval|(time|interval)\b[^"]*)"')


class DeltaFormat:
    """Stateless."""

    changes_folder: str | None = "_change_data"

    def require(self, name: str, schema: Schema) -> None:
        for column in schema:
            if column.name.lower() in _FEED_COLUMNS:
                raise ConfigError(
                    f"{name}: a Delta table cannot have the column {column.name}, which its change feed has",
                    "Rename it, or remove `output`.",
                )
            if _OTHER_TYPES.search(json.dumps(column.type.json)):
                raise ConfigError(
                    f"{name}: a Delta table cannot have the column {column.name}, of type {column.type}",
                    "Cast it to another type, or remove `output`.",
                )

    def numbers(self, before: TableVersion | None, uri: str, schema: Schema) -> Mapping[str, int]:
        return {}

    def load(self, storage: Storage, uri: str) -> TableVersion | None:
        known = WRITTEN.of(storage, uri)
        if known is not None:
            return known
        log = DeltaLog(*storage.filesystem(uri))
        if log.version < 0:
            return None
        try:
            head, added = log.live()
        except VersionGone as error:
            raise ValueError(str(error)) from error
        schema = Schema.from_json(head.metadata["schemaString"])
        stored = Schema((*schema, POSITION_COLUMN))
        return TableVersion(
            uri,
            log.version,
            upper=head.transactions.get(UPPER, 0),
            at=_time_of(log),
            schema=schema,
            sorted_by=tuple(json.loads(_configuration(head).get(SORTED, "[]"))),
            retained=_retained(_configuration(head)),
            files=tuple(_file(add, stored) for add in added),
            features=tuple(head.protocol.get("readerFeatures") or ()),
            is_ours=_is_ours(log, head.transactions.get(VERSION, -1)),
        )

    def deleted(self, storage: Storage, version: TableVersion, file: TableFile) -> BitMap64:
        vector = file.vector
        if vector is None:
            return positions()
        filesystem, root = storage.filesystem(version.uri)
        return read_vector(filesystem, f"{root}/{vector_file(vector['pathOrInlineDv'])}", int(vector["offset"]))

    def commit(
        self, storage: Storage, uri: str, name: str, before: TableVersion | None, change: TableChange
    ) -> TableVersion:
        number = 0 if before is None else before.number + 1
        at = max(change.upper - 1, 0 if before is None else before.at + 1)
        vectors = _write_vectors(storage, uri, change.gone)
        marked = {path: (len(gone), vectors[path]) for path, gone in change.gone.items()}
        lines = list(entry_of(name, before, change, marked, number=number, at=at))
        written = [file.path for file in (*change.came, *change.changes)]
        paths = [f"{uri}/{path}" for path in (*written, *(f"{path}{SUFFIX}" for path in written))]
        try:
            durable.note(*(path for path in paths if os.path.exists(path)))
            uploads.settle(uri)
            durable.settle()
            reached("table: before its commit")
            if storage.is_local:
                os.makedirs(f"{uri}/_delta_log", exist_ok=True)
            if write_entry(uri, number, lines, storage.options) is None:
                raise CommitConflict(
                    f"another writer changed the table of {name} at {uri} first",
                    "Run again. Only this model writes it.",
                )
            _date(storage, uri, number, at)
            durable.note(entry_path(uri, number))
            durable.settle()
        except OSError as error:
            raise StateError(f"the table of {name} at {uri} cannot be written: {error}", "Run again.") from error
        reached("table: committed")
        if is_due(uri, number):
            _checkpoint(storage, uri, number)
        after = _after(uri, before, change, marked, number=number, at=at)
        WRITTEN.note(storage, after)
        return after

    def needed(self, storage: Storage, uri: str, since: Time) -> set[str] | None:
        filesystem, root = storage.filesystem(uri)
        log = DeltaLog(filesystem, root)
        if log.version < 0:
            return None
        found: set[str] = set()
        oldest = log.version
        for version, actions in log.backwards():
            oldest = version
            found.update(path for action in actions for path in _paths(action))
            if _at(actions) <= since:
                break
        _, added = log.live()
        found.update(path for add in added for path in _paths({"add": add}))
        _checkpoint(storage, uri, oldest)
        return found | set(DeltaLog(filesystem, root).from_version(oldest))


def _mark(storage: Storage, version: TableVersion) -> str | None:
    """Of a version's entry in the log."""
    uri, number = version.uri, version.number
    path = entry_path(uri, number)
    if storage.is_local:
        with suppress(OSError):
            return None if os.path.exists(entry_path(uri, number + 1)) else str(os.stat(path).st_mtime_ns)
        return None
    objects, key = objects_of(path, storage.options)
    folder, _, _ = key.rpartition("/")
    found = objects.after(folder, f"{folder}/{number - 1:020d}.json" if number else folder)
    entries = {name: tag for name, tag in found.items() if re.fullmatch(r"\d{20}\.json", name.rpartition("/")[2])}
    return entries.get(key) if len(entries) == 1 else None


WRITTEN: LastWritten[TableVersion] = LastWritten(_mark)


def _checkpoint(storage: Storage, uri: str, number: int) -> None:
    """Of a version; the table is right without it."""
    with suppress(DeltaError, OSError):
        DeltaTable(uri, version=number, storage_options=dict(storage.options)).create_checkpoint()


def _date(storage: Storage, uri: str, number: int, at: Time) -> None:
    """Readers that do not know times within commits take those of the entries' files."""
    if storage.is_local:
        os.utime(entry_path(uri, number), (at / 1000, at / 1000))


def _time_of(log: DeltaLog) -> Time:
    """The latest version's time; 0 where its entry is gone."""
    return next((_at(actions) for _, actions in log.backwards()), 0)


def _at(actions: Sequence[Mapping[str, Any]]) -> Time:
    """The time of a commit with these actions; 0 where they do not tell."""
    found = (action["commitInfo"] for action in actions if "commitInfo" in action)
    return next((int(info.get("inCommitTimestamp") or info.get("timestamp") or 0) for info in found), 0)


def _is_ours(log: DeltaLog, own: int) -> bool:
    """Whether nothing has changed the table since the version ``own``; -1: none is ours."""
    try:
        return own >= 0 and not any(_changes_table(action) for action in log.between(own, log.version))
    except VersionGone:  # others have cleaned the log up
        return False


def _changes_table(action: Mapping[str, Any]) -> bool:
    """Whether it changes rows, files or columns: compaction by others moves rows to other positions."""
    return any(name in action for name in ("add", "remove", "metaData", "protocol"))


def _configuration(head: Head) -> dict[str, str]:
    return dict(head.metadata.get("configuration") or {})


def _retained(configuration: Mapping[str, str]) -> int:
    """Milliseconds; 0 where the table does not say it as we do."""
    found = re.fullmatch(r"interval (\d+) seconds", configuration.get(RETENTIONS[0], ""))
    return 1000 * int(found[1]) if found else 0


def _file(add: Mapping[str, Any], stored: Schema) -> TableFile:
    stats, first = json.loads(add["stats"]), int(dict(add.get("tags") or {}).get(FIRST, -1))
    rows, vector = int(stats["numRecords"]), add.get("deletionVector")
    lows, highs = stats.get("minValues", {}), stats.get("maxValues", {})
    bounds = typed_bounds({name: (low, highs[name]) for name, low in lows.items() if name in highs}, stored)
    bounds[POSITION] = (first, first + rows - 1)
    if vector is not None and (vector["storageType"], len(vector["pathOrInlineDv"])) != ("u", _VECTOR_NAME):
        raise ValueError(f"it names the vector {vector['pathOrInlineDv']!r}, which is no file of its own")
    data = DataFile(own_path(add["path"]), rows, add["size"], first=0, last=0, min_diff=0, max_diff=0, bounds=bounds)
    return TableFile(data, int(vector["cardinality"]) if vector else 0, dict(vector) if vector else None)


def _write_vectors(storage: Storage, uri: str, gone: Mapping[str, BitMap64]) -> dict[str, Mapping[str, Any]]:
    """All of them in one file, by the paths of the files whose rows they mark."""
    if not gone:
        return {}
    name = uuid.uuid4()
    data, places = vectors_as_file(list(gone.values()))
    put(storage, f"{uri}/{vector_file(file_text(name))}", data)
    reached("table: vectors written")
    return {
        path: {
            "storageType": "u",
            "pathOrInlineDv": file_text(name),
            "offset": offset,
            "sizeInBytes": size,
            "cardinality": len(vector),
        }
        for (path, vector), (offset, size) in zip(gone.items(), places, strict=True)
    }


def _after(
    uri: str,
    before: TableVersion | None,
    change: TableChange,
    marked: Mapping[str, tuple[int, Mapping[str, Any]]],
    *,
    number: int,
    at: Time,
) -> TableVersion:
    went = {file.data.path for file in (files_of(before) if change.replaces is not None else change.went)}
    stayed = [
        TableFile(file.data, *marked[file.data.path]) if file.data.path in marked else file
        for file in files_of(before)
        if file.data.path not in went
    ]
    schema = change.replaces or (before.schema if before is not None else None)
    assert schema is not None
    sorted_by = change.sorted_by if change.replaces is not None or before is None else before.sorted_by
    return TableVersion(
        uri,
        number,
        upper=change.upper,
        at=at,
        schema=schema,
        sorted_by=sorted_by,
        retained=max(change.retained, LEAST_RETAINED),
        files=(*stayed, *(TableFile(data) for data in change.came)),
        features=features_of(before, change, schema),
    )


def _paths(action: Mapping[str, Any]) -> Iterator[str]:
    """The files that an action names, below the table's folder."""
    for kind in ("add", "remove", "cdc"):
        if found := action.get(kind):
            yield found["path"]
            yield f"{found['path']}{SUFFIX}"
            vector = found.get("deletionVector")
            if vector and vector["storageType"] == "u":
                yield vector_file(vector["pathOrInlineDv"])
