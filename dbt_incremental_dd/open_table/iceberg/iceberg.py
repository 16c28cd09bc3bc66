"""Open tables as Iceberg tables: deleted positions, and the collection's times as those of snapshots.

Source: the Apache Iceberg table specification, version 2, with files of metadata as its tables in file systems have
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.lake.avro import read_records
from dbt_incremental_dd.lake.positions import positions
from dbt_incremental_dd.open_table.iceberg import metadata as tables
from dbt_incremental_dd.open_table.iceberg import metadata_files
from dbt_incremental_dd.open_table.iceberg.columns import numbers_of, require_columns
from dbt_incremental_dd.open_table.iceberg.deletes import read_deletes
from dbt_incremental_dd.open_table.iceberg.files import own_path_of, table_files
from dbt_incremental_dd.open_table.iceberg.manifests import Manifest, live_entries
from dbt_incremental_dd.open_table.iceberg.metadata import Metadata
from dbt_incremental_dd.open_table.iceberg.snapshot import snapshot_of
from dbt_incremental_dd.open_table.last_written import LastWritten
from dbt_incremental_dd.open_table.put import put
from dbt_incremental_dd.open_table.table import TableChange, TableFile, TableVersion
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.storage import durable, uploads
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyroaring import BitMap64


@dataclass(frozen=True)
class IcebergVersion(TableVersion):
    """``number``: its snapshot's sequence number. ``metadata``: the table's; ``file_number``: of its file;
    ``manifests``: those of the snapshot."""

    metadata: Metadata = None  # type: ignore[assignment]
    file_number: int = 0
    manifests: tuple[Manifest, ...] = ()


class IcebergFormat:
    """Stateless."""

    changes_folder: str | None = None

    def require(self, name: str, schema: Schema) -> None:
        require_columns(name, schema)

    def numbers(self, before: TableVersion | None, uri: str, schema: Schema) -> Mapping[str, int]:
        return numbers_of(tables.fields_after(_base(before, uri, schema), schema))

    def load(self, storage: Storage, uri: str) -> TableVersion | None:
        known = WRITTEN.of(storage, uri)
        if known is not None:
            return known
        number = metadata_files.newest(storage, uri)
        if number == 0:
            return None
        metadata = metadata_files.read(storage, uri, number)
        is_ours = tables.upper_of(metadata) is not None and metadata["location"] == uri
        manifests = _manifests(storage, uri, metadata) if is_ours else ()
        return _version(uri, number, metadata, manifests, is_ours=is_ours)

    def deleted(self, storage: Storage, version: TableVersion, file: TableFile) -> BitMap64:
        return positions() if file.vector is None else read_deletes(storage, f"{version.uri}/{file.vector['path']}")

    def commit(
        self, storage: Storage, uri: str, name: str, before: TableVersion | None, change: TableChange
    ) -> TableVersion:
        assert before is None or isinstance(before, IcebergVersion)
        at = max(change.upper - 1, 0 if before is None else before.at + 1)
        metadata, stays = _continued(uri, before, change)
        made = snapshot_of(metadata, stays, change, tables.schema_of(metadata), tables.fields_now(metadata), at)
        metadata = tables.with_snapshot(metadata, made.record, change.retained)
        number = 1 if before is None else before.file_number + 1
        written = [file.path for file in change.came]
        paths = [f"{uri}/{path}" for path in (*written, *(f"{path}{SUFFIX}" for path in written))]
        try:
            durable.note(*(path for path in paths if os.path.exists(path)))
            for path, data in made.files.items():
                put(storage, path, data)
            reached("table: vectors written")
            _publish(storage, uri, name, number, metadata)
        except OSError as error:
            raise StateError(f"the table of {name} at {uri} cannot be written: {error}", "Run again.") from error
        after = _version(uri, number, metadata, made.manifests, is_ours=True)
        WRITTEN.note(storage, after)
        return after

    def needed(self, storage: Storage, uri: str, since: Time) -> set[str] | None:
        try:
            return _needed(storage, uri, since)
        except (OSError, ValueError, KeyError) as error:
            remedy = "Remove its folder: the next run writes it anew."
            raise StateError(f"the table at {uri} cannot be read: {error}", remedy) from error


def _version(
    uri: str, number: int, metadata: Metadata, manifests: tuple[Manifest, ...], *, is_ours: bool
) -> IcebergVersion:
    """What the file of metadata of this number says; ``manifests``: those of its snapshot, if that is ours."""
    schema = tables.schema_of(metadata)
    return IcebergVersion(
        uri,
        tables.number_of(metadata),
        upper=tables.upper_of(metadata) or 0,
        at=tables.latest_time(metadata),
        schema=schema,
        sorted_by=tables.sorted_by_of(metadata),
        retained=tables.retained_of(metadata),
        files=table_files(uri, manifests, schema, tables.fields_now(metadata)) if is_ours else (),
        is_ours=is_ours,
        metadata=metadata,
        file_number=number,
        manifests=manifests,
    )


def _continued(uri: str, before: IcebergVersion | None, change: TableChange) -> tuple[Metadata, tuple[Manifest, ...]]:
    """What a change starts from: the metadata with its columns, and the manifests of what stays."""
    if before is not None and change.replaces is None:
        return before.metadata, before.manifests
    assert change.replaces is not None
    base = _base(before, uri, change.replaces)
    return tables.with_schema(base, uri, change.replaces, change.sorted_by), ()


def _base(before: TableVersion | None, uri: str, schema: Schema) -> Metadata | None:
    return tables.base_of(before.metadata, uri, schema) if isinstance(before, IcebergVersion) else None


def _mark(storage: Storage, version: IcebergVersion) -> str | None:
    """Of a version's file of metadata."""
    if metadata_files.is_there(storage, version.uri, version.file_number + 1):
        return None
    return metadata_files.mark(storage, f"{version.uri}/{metadata_files.metadata_path(version.file_number)}")


WRITTEN: LastWritten[IcebergVersion] = LastWritten(_mark)


def _publish(storage: Storage, uri: str, name: str, number: int, metadata: Metadata) -> None:
    """Makes the metadata the table's, after all that it names. Raises OSError, CommitConflict."""
    uploads.settle(uri)
    durable.settle()
    reached("table: before its commit")
    if not metadata_files.write(storage, uri, number, metadata):
        raise CommitConflict(
            f"another writer changed the table of {name} at {uri} first", "Run again. Only this model writes it."
        )
    reached("table: committed")
    metadata_files.hint(storage, uri, number)
    metadata_files.remove_former(storage, uri, number)


def _manifests(storage: Storage, uri: str, metadata: Metadata) -> tuple[Manifest, ...]:
    """Those of the current snapshot. Raises OSError or ValueError, also for files elsewhere."""
    snapshot = tables.current_snapshot(metadata)
    return () if snapshot is None else tuple(_listed(storage, uri, snapshot))


def _listed(storage: Storage, uri: str, snapshot: Mapping[str, Any]) -> Iterator[Manifest]:
    for listed in _records(storage, uri, snapshot["manifest-list"]):
        yield Manifest(listed, live_entries(_records(storage, uri, listed["manifest_path"]), listed))


def _records(storage: Storage, uri: str, path: str) -> list[dict[str, Any]]:
    filesystem, root = storage.filesystem(uri)
    return read_records(filesystem, f"{root}/{own_path_of(uri, path)}")


def _needed(storage: Storage, uri: str, since: Time) -> set[str] | None:
    number = metadata_files.newest(storage, uri)
    if number == 0:
        return None
    metadata = metadata_files.read(storage, uri, number)
    without = tables.without_former(metadata, since)
    if without is not None:
        number, metadata = number + 1, without
        _publish(storage, uri, uri, number, metadata)
    found = metadata_files.kept_paths(number)
    known: set[str] = set()
    for snapshot in metadata["snapshots"]:
        found.update(_paths(storage, uri, snapshot, known))
    found.update(_below(uri, tables.statistics_of(metadata)))
    return found


def _paths(storage: Storage, uri: str, snapshot: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    """The files below the table's folder that a snapshot needs. ``known``: manifests that were looked at."""
    yield from _below(uri, [snapshot["manifest-list"]])
    for listed in _records(storage, uri, snapshot["manifest-list"]):
        path = listed["manifest_path"]
        if path in known:
            continue
        known.add(path)
        yield from _below(uri, [path])
        for file in _below(uri, live_entries(_records(storage, uri, path), listed)):
            yield from (file, f"{file}{SUFFIX}")


def _below(uri: str, paths: Any) -> Iterator[str]:
    return (path.removeprefix(f"{uri}/") for path in paths if path.startswith(f"{uri}/"))
