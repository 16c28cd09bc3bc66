"""Compaction of collections under their RETAIN HISTORY windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import BEGINNING, format_time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.relation import publish, stored_relation, was_published
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.compact import Compaction, compact_trace, merge_recent
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.holds import Hold, holds, movable
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Commit, Log, total_rows

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
    if done.files_after != done.files_before:
        _show(Catalog(session), place, manifest, done.log)
    return _line(place.name, done, holders)


def forget(catalog: Catalog, place: CollectionStore, log: Log) -> Log:
    """The log after compaction, where history beyond the retained window has come to be much of the updates. So what a
    run reads stays in proportion to rows, and compaction to changes. Opens no session. Call it as the collection's
    writer; where another one comes first, it has to do it."""
    session, total, most = catalog.session, total_rows(log.files), place.storage.thresholds
    is_cheap = session.is_open or (total <= most.local_rows and is_readable(log.schema))
    if total <= most.history_rows or not is_cheap:
        return log
    manifest = place.read_manifest(log.manifest)
    if manifest is None or not _is_due(log, manifest, ()):
        return log
    held = holds(place.storage).get(place.name, ())
    if not _is_due(log, manifest, held):
        return log
    since, _ = movable(log, manifest.retain_history, held)
    try:
        done = compact_trace(
            lambda: session.spark, place.storage, log, since=since, diffs=(DIFF,), sort_by=manifest.sorted_by
        )
    except CommitConflict:
        return log
    _show(catalog, place, manifest, done.log)
    return done.log


def _is_due(log: Log, manifest: Manifest, held: Sequence[Hold]) -> bool:
    """Whether compaction drops a third of the updates at least: it leaves a row of each that is there."""
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


def _line(name: str, done: Compaction, holders: Sequence[Hold]) -> str:
    since = done.log.frontiers.since
    text = (
        f"{name}: since {format_time(since) if since else 'the beginning'}, "
        f"updates {done.updates_before} -> {done.updates_after}, files {done.files_before} -> {done.files_after}"
    )
    return f"{text}; held back by {holders[0].by}" if holders else text
