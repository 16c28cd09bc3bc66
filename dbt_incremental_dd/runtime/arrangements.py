"""Upkeep of collections' arrangements: who reads them, and compaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.trace.compact import compact_trace
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILES = 4
"""An arrangement of fewer files is left as it is."""


def readers(storage: Storage) -> Mapping[str, tuple[str, ...]]:
    """The models that use each arrangement, by its URI. Reads every model's manifest."""
    found: dict[str, tuple[str, ...]] = {}
    for place in storage.collections():
        log = place.log()
        manifest = place.read_manifest(log.manifest) if log is not None else None
        for used in manifest.arrangements if isinstance(manifest, ModelManifest) else ():
            uri = storage.collection(used.collection).arrangement(used.column).uri
            found[uri] = (*found.get(uri, ()), place.name)
    return found


def compact_arrangements(spark: Callable[[], SparkSession], place: CollectionStore, log: Log) -> None:
    """Merges the files of a collection's arrangements. One that has been left behind the collection's history goes."""
    for arrangement in place.arrangements():
        with writing(arrangement):
            try:
                stored = arrangement.log()
            except StateError:
                stored = None
            if stored is None or stored.frontiers.last < log.frontiers.since:
                arrangement.remove()
            elif len(stored.files) >= _FILES:
                column = tuple(column.name for column in stored.schema if column.name in stored.files[0].bounds)
                since = max(stored.frontiers.since, log.frontiers.since)
                compact_trace(spark, place.storage, stored, since=since, diffs=(DIFF,), sort_by=column)
