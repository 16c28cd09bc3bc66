"""Compaction of collections under their RETAIN HISTORY windows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import BEGINNING, format_time
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.relation import publish, stored_relation
from dbt_incremental_dd.runtime.shown import was_published
from dbt_incremental_dd.runtime.table_note import advance_note
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.compact import Compaction, compact_trace, merge_recent
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.holds import Hold, Holds, holds, holds_of_readers, movable
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log, total_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INNER_FILES = 4
"""A trace of fewer files is left as it is."""


def compact(
    session: LazySession, storage: Storage, names: list[str] | None = None, retain_history: int | None = None
) -> Iterator[str]:
    """Compacts the named collections, or all; yields a line about each.

    ``since`` moves to ``upper - retain_history`` (ms), never beyond what a model or a reader has still to read. The
    session is opened for what the driver cannot merge, and where a relation has to be replaced.
    """
    held = holds(storage)
    for place in storage.collections():
        if names is not None and place.name not in names:
            continue
        with writing(place):
            log = place.log()
            if log is None or log.manifest is None:
                continue
            advance_note(place, log)
            line = _compact_one(session, place, log, retain_history, held.get(place.name, ()))
        yield line


def _compact_one(
    session: LazySession, place: CollectionStore, log: Log, retain_history: int | None, held: tuple[Hold, ...]
) -> str:
    manifest = place.read_manifest(log.manifest) or Manifest()
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
    _compact_arrangements(session, place, merged)
    reached("compaction: arrangements merged")
    done = replace(done, log=merged, files_after=len(merged.files))
    if done.files_after != done.files_before:
        _show(Catalog(session), place, manifest, done.log)
    return _line(place.name, done, holders)


def forget(catalog: Catalog, place: CollectionStore, log: Log, of_models: Callable[[], Holds]) -> Log:
    """The log after compaction, if that drops much of what is beyond the retained window. So what a run reads stays in
    proportion to rows, and compaction to changes.

    No session is opened for it. Call it as the collection's writer; if another one commits first, nothing is compacted.
    ``of_models``: what models have still to read, or had at some time of this run.
    """
    if total_rows(log.files) <= place.storage.thresholds.history_rows:
        return log
    manifest = place.read_manifest(log.manifest)
    if manifest is None or not _is_due(log, manifest, ()):
        return log
    held = (*of_models().get(place.name, ()), *holds_of_readers(place))
    if not _is_due(log, manifest, held):
        return log
    since, _ = movable(log, manifest.retain_history, held)

    def spark() -> SparkSession:
        if not catalog.session.is_open:
            raise NotExact("only Spark can merge the files")
        return catalog.session.spark

    try:
        done = compact_trace(spark, place.storage, log, since=since, diffs=(DIFF,), sort_by=manifest.sorted_by)
    except (CommitConflict, NotExact):
        return log
    _show(catalog, place, manifest, done.log)
    return done.log


def _is_due(log: Log, manifest: Manifest, held: Sequence[Hold]) -> bool:
    """Whether compaction drops a third of the updates at least. As many as there are rows stay."""
    if manifest.rows is None:
        return False
    since, _ = movable(log, manifest.retain_history, held)
    gain = total_rows(between(log.files, BEGINNING, since)) - manifest.rows
    return 3 * gain >= total_rows(log.files)


def _show(catalog: Catalog, place: CollectionStore, manifest: Manifest, log: Log) -> None:
    """The model's relations show the log's files, if it has any."""
    relation = stored_relation(place, manifest) if isinstance(manifest, ModelManifest) else None
    if relation and was_published(place):
        publish(catalog, place, relation, log, visible_schema(manifest, log), anew=False)


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


def _compact_arrangements(session: LazySession, place: CollectionStore, log: Log) -> None:
    """Merges the files of the collection's arrangements. One that its history has left behind goes, and a damaged one:
    it is made anew when it is needed."""
    for arrangement in place.arrangements():
        with writing(arrangement):
            try:
                stored = arrangement.log()
            except StateError:
                stored = None
            if stored is None or stored.frontiers.last < log.frontiers.since:
                arrangement.remove()
            elif len(stored.files) >= INNER_FILES:
                by = tuple(name for name in stored.schema.names if place.arrangement(name).uri == arrangement.uri)
                since = max(stored.frontiers.since, log.frontiers.since)
                compact_trace(lambda: session.spark, place.storage, stored, since=since, diffs=(DIFF,), sort_by=by)


def _line(name: str, done: Compaction, holders: Sequence[Hold]) -> str:
    since = done.log.frontiers.since
    text = (
        f"{name}: since {format_time(since) if since else 'the beginning'}, "
        f"updates {done.updates_before} -> {done.updates_after}, files {done.files_before} -> {done.files_after}"
    )
    return f"{text}; held back by {holders[0].by}" if holders else text
