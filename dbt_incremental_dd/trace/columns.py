"""The visible columns of a collection."""

from __future__ import annotations

from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log


def columns_of(place: CollectionStore, log: Log) -> Schema:
    """The visible columns as of a version of the collection's log."""
    return visible_schema(place.read_manifest(log.manifest), log)


def visible_schema(manifest: Manifest | None, log: Log) -> Schema:
    """The manifest's schema; without one, the log's columns whose names do not begin with ``dd_``."""
    if manifest is not None and manifest.schema is not None:
        return manifest.schema
    return Schema(tuple(column for column in log.schema if not column.name.startswith("dd_")))
