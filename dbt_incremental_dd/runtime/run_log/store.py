"""Appends to collections that are kept bounded: their oldest rows go, from the disk, too.

Small files are merged in the commit that appends. Rows that are too many or too old are retracted, a quarter or a tenth
of what is kept at once; their history is dropped as soon as no reader holds it. On a disk nothing is synced: what a
power cut has damaged begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from dbt_incremental_dd.core.errors import CommitConflict, StateError
from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time, now
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.runtime.run_log.columns import SCHEMAS, Row
from dbt_incremental_dd.runtime.vacuum import vacuum_one
from dbt_incremental_dd.storage import durable
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.compact import compact_trace
from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.holds import holds_of_readers, movable
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.write import write_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BEGAN = "began"
"""The column, ms, that tells the age of a row."""
_STORED = "stored_after_trim"
"""The entry of the manifest that has the number of updates after the last trim; its own number has the time."""
_TRIES = 5
"""Before others' commits are too many."""
_PATIENCE = 5.0
"""Seconds to wait for another process on this machine."""
_AT_HAND = 3_600_000
"""Ms for which readers may still be at files that are no longer needed."""


@dataclass(frozen=True)
class Retention:
    """How many rows stay (a quarter more before some go), and for how many ms."""

    rows: int
    age: int


@dataclass(frozen=True)
class Batch:
    """Rows for a collection, by name of column; what a row does not name is NULL."""

    place: CollectionStore
    rows: Sequence[Row]
    retention: Retention


def append(*batches: Batch) -> None:
    """Adds rows to several collections.

    All get the time of the commits, which is the same unless others write at once: a query that joins the collections
    reads them as of the earliest of their times. Raises CommitConflict if others keep writing, StateError or OSError if
    it cannot be written.
    """
    with writing(batches[0].place, longest_wait=_PATIENCE), durable.unsynced():
        is_local = batches[0].place.storage.is_local
        # In object storage each takes requests, one after another.
        with nullcontext() if is_local else ThreadPoolExecutor(len(batches)) as pool:
            each = map if pool is None else pool.map
            logs = list(each(lambda batch: _log(batch.place), batches))
            t = max(now(), *(log.frontiers.upper for log in logs))
            list(each(lambda batch, log: _add_or_begin_anew(batch, log, t), batches, logs))


def _add_or_begin_anew(batch: Batch, log: Log, t: Time) -> None:
    """Of a collection that is damaged nothing stays."""
    try:
        _add(batch, log, t)
    except (StateError, OSError, pa.ArrowException):
        if not _is_damaged(batch.place):
            raise
        batch.place.remove()
        _add(batch, _log(batch.place), t)


def _add(batch: Batch, log: Log, t: Time) -> None:
    """Appends, and drops what is too old. In object storage several processes may write at once: the second commits
    anew."""
    for left in reversed(range(_TRIES)):
        try:
            made = _append(batch.place, log, batch.rows, max(t, log.frontiers.upper))
            break
        except CommitConflict:
            if not left:
                raise
            log = _log(batch.place)
    if _is_due(batch.place, made, batch.retention):
        _trim(batch.place, made, batch.retention)


def _is_damaged(place: CollectionStore) -> bool:
    """Whether files on a disk are not as they were written: they are not synced."""
    if not place.storage.is_local:
        return False
    try:
        log = place.log()
        return log is not None and damage(place.storage, log, contents=True) is not None
    except StateError:
        return True


def _schema(place: CollectionStore) -> Schema:
    return Schema((*SCHEMAS[place.name].columns, TIME_COLUMN, DIFF_COLUMN))


def _log(place: CollectionStore) -> Log:
    """One that is damaged begins anew: nothing depends on it."""
    try:
        return place.log() or place.create(_schema(place))
    except StateError:
        if not _is_damaged(place):
            raise
        place.remove()
        return place.create(_schema(place))


def _append(place: CollectionStore, log: Log, rows: Sequence[Row], t: Time) -> Log:
    if not rows:
        return log.commit(Commit(upper=t + 1))
    schema = _schema(place)
    added = _table(schema, [{**row, TIME: t, DIFF: 1} for row in rows])
    small = log.mergeable()
    stored = [read_files(place.storage, log.uri, small, schema)] if small else []
    file = write_arrow(place.storage, log.uri, pa.concat_tables([*stored, added]), schema, (_BEGAN,))
    is_wider = log.manifest is None or set(schema.names) > set(log.schema.names)
    manifest = _write_manifest(place, total_rows(log.files)) if is_wider else None
    return log.commit(Commit(add=(file,), remove=small, upper=t + 1, manifest=manifest, schema=schema))


def _table(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """By way of JSON: Arrow imports pandas, which takes long, to make arrays of Python's values."""
    columns = pa.schema([(column.name, arrow_type(column.type)) for column in schema])
    text = "\n".join(json.dumps(row) for row in rows)
    how = pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="error")
    return pj.read_json(pa.BufferReader(text.encode()), pj.ReadOptions(use_threads=False), how)


def _write_manifest(place: CollectionStore, stored: int) -> int:
    """No history is kept but for readers that hold it."""
    return place.write_manifest(
        Manifest(kind="runs", schema=SCHEMAS[place.name], retain_history=0, unknown={_STORED: stored})
    )


def _is_due(place: CollectionStore, log: Log, retention: Retention) -> bool:
    """Whether rows have to go; not again before there are as many more, or so much time has passed: readers may still
    hold what has gone."""
    oldest = min((file.bounds[_BEGAN][0] for file in log.files if _BEGAN in file.bounds), default=now())
    trimmed = (log.manifest or 0) // 1_000_000
    if oldest < now() - retention.age * 11 // 10 and trimmed < now() - retention.age // 10:
        return True
    if total_rows(log.files) <= retention.rows * 5 // 4:
        return False
    manifest = place.read_manifest(log.manifest)
    stored = manifest.unknown.get(_STORED, 0) if manifest is not None else 0
    return total_rows(log.files) >= stored + retention.rows // 4


def _trim(place: CollectionStore, log: Log, retention: Retention) -> None:
    """Retracts what is beyond the retention, drops the history that nobody holds, and the files."""
    found = contents(place, log.frontiers.last).sort_by([(_BEGAN, "descending")])
    is_young = pc.greater_equal(found[_BEGAN], now() - retention.age)
    is_kept = pc.and_(is_young, pc.less(pa.array(range(len(found)), pa.int64()), retention.rows))
    gone = found.filter(pc.invert(is_kept))
    if len(gone):
        log = _retract(place, log, gone)
    since, _ = movable(log, 0, holds_of_readers(place))
    log = compact_trace(_no_spark, place.storage, log, since=since, diffs=(DIFF,)).log
    log.commit(Commit(manifest=_write_manifest(place, total_rows(log.files))))
    vacuum_one(place, _AT_HAND)


def _retract(place: CollectionStore, log: Log, rows: pa.Table) -> Log:
    t, schema = max(now(), log.frontiers.upper), _schema(place)
    diffs = pc.negate(rows[DIFF])
    table = rows.drop_columns([DIFF]).append_column(TIME, pa.repeat(pa.scalar(t, pa.int64()), len(rows)))
    table = table.append_column(DIFF, diffs)
    file = write_arrow(place.storage, log.uri, table.select(list(schema.names)), schema, (_BEGAN,))
    return log.commit(Commit(add=(replace(file, bounds={}),), upper=t + 1))


def _no_spark() -> SparkSession:
    raise NotExact("only Spark can merge the files")
