"""Compaction of collections under their RETAIN HISTORY windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.relation import publish, stored_relation, was_published
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.compact import Compaction, compact_trace, merge_recent
from dbt_incremental_dd.trace.holds import Hold, holds, movable
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Commit, Log

INNER_FILES = 4
"""A trace of fewer files is left as it is."""


def compact(
    session: LazySession, storage: Storage, names: list[str] | None = None, retain_history: int | None = None
) -> Iterator[str]:
    """Compacts the named collections, or all; yields a line about each.

    The session is opened for what the driver cannot merge, and where a relation has to be replaced.
    ``since`` moves to ``upper - retain_history`` (ms), never beyond what a model or a reader has still to read.
    """
    held = holds(storage)
    for place in storage.collections():
        if names is not None and place.name not in names:
            continue
        with writing(place):
            log = place.log()
            if log is None or log.manifest is None:
                continue
            line = _compact_one(session, place, log, retain_history, held.get(place.name, ()))
        yield line


def _compact_one(
    session: LazySession, place: CollectionStore, log: Log, retain_history: int | None, held: tuple[Hold, ...]
) -> str:
    manifest = place.read_manifest(log.manifest) or Manifest()
    relation = stored_relation(place, manifest) if isinstance(manifest, ModelManifest) else None
    retain = retain_history if retain_history is not None else manifest.retain_history
    since, holders = movable(log, retain, held)
    inner = _compact_inner(session, place, manifest.inner)
    reached("compaction: states merged")
    if inner != manifest.inner:
        log = log.commit(Commit(manifest=place.write_manifest(replace(manifest, inner=inner))))
    done = compact_trace(
        lambda: session.spark, place.storage, log, since=since, diffs=(DIFF,), sort_by=manifest.sorted_by
    )
    reached("compaction: trace merged")
    merged = merge_recent(place.storage, done.log, manifest.sorted_by)
    done = replace(done, log=merged, files_after=len(merged.files))
    if relation and was_published(place) and done.files_after != done.files_before:
        publish(Catalog(session), place, relation, done.log, visible_schema(manifest, done.log), anew=False)
    return _line(place.name, done, holders)


def _compact_inner(session: LazySession, place: CollectionStore, inner: Mapping[str, int]) -> dict[str, int]:
    """Merges the files of the operators' own traces; their versions afterwards, for the manifest.

    Only a trace that is where the manifest says: what lies beyond belongs to a run that has not committed.
    """
    versions = dict(inner)
    for name, version in inner.items():
        log = place.inner(name).log()
        if log is None or log.version != version or len(log.files) < INNER_FILES:
            continue
        diffs = tuple(column.name for column in log.schema if re.fullmatch(r"dd_diff|dd_a\d+", column.name))
        last = max(file.last for file in log.files)
        arranged_by = tuple(column.name for column in log.schema if column.name in log.files[0].bounds)
        versions[name] = compact_trace(
            lambda: session.spark, place.storage, log, since=last, diffs=diffs, sort_by=arranged_by
        ).log.version
    return versions


def _line(name: str, done: Compaction, holders: Sequence[Hold]) -> str:
    since = done.log.frontiers.since
    text = (
        f"{name}: since {format_time(since) if since else 'the beginning'}, "
        f"updates {done.updates_before} -> {done.updates_after}, files {done.files_before} -> {done.files_after}"
    )
    return f"{text}; held back by {holders[0].by}" if holders else text
