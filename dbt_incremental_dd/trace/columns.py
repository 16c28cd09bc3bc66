"""A collection's log, and the columns that are visible as of it."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log


def require(storage: Storage, name: str) -> tuple[Log, Schema]:
    """A collection's log and visible schema. Raises StateError, naming what there is, where it was never stored."""
    place = storage.collection(name)
    log = place.log()
    if log is None:
        known = ", ".join(other.name for other in storage.collections()) or "none"
        raise StateError(f"there is no collection {name} under {storage.root}", f"Known collections: {known}.")
    return log, columns_of(place, log)


def columns_of(place: CollectionStore, log: Log) -> Schema:
    """The visible columns as of a version of the collection's log."""
    return visible_schema(place.read_manifest(log.manifest), log)


def visible_schema(manifest: Manifest | None, log: Log) -> Schema:
    """The manifest's schema; without one, the log's columns whose names do not begin with ``dd_``."""
    if manifest is not None and manifest.schema is not None:
        return manifest.schema
    return Schema(tuple(column for column in log.schema if not column.name.startswith("dd_")))
