"""Compaction: times up to ``since`` become one, updates that cancel out are dropped, and small files are merged.

For every ``t >= since``, the contents as of ``t`` stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES, is_ordered, is_readable
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.files import between, inserts_only
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.merge import merged, summed
from dbt_incremental_dd.trace.ranges import ranges
from dbt_incremental_dd.trace.spark_reader import consolidate, quoted, updates
from dbt_incremental_dd.trace.write import ROWS_PER_FILE, remove_files, write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Compaction:
    """The result of compacting a trace: its log, and the numbers of updates and files before and after."""

    log: Log
    updates_before: int
    updates_after: int
    files_before: int
    files_after: int


def merge_recent(storage: Storage, log: Log, sort_by: tuple[str, ...] = ()) -> Log:
    """The log after merging small files of times after ``since``; their times are kept."""
    if not is_readable(log.schema):
        return log
    sort_by = tuple(name for name in sort_by if is_ordered(log.schema.select((name,))))
    bounded = _bounded(log.schema, (DIFF,))
    while small := log.mergeable():
        table = read_files(storage, log.uri, small, log.schema)
        order = [(name, "ascending") for name in (*sort_by, TIME)]
        written = write_arrow(storage, log.uri, table.sort_by(order), log.schema, bounded)
        reached("compaction: recent files written")
        log = log.commit(Commit(add=(written,), remove=small, changes_data=False))
    return log


def _bounded(schema: Schema, diffs: tuple[str, ...]) -> tuple[str, ...]:
    """Columns that files have bounds for."""
    return tuple(c.name for c in schema if c.type in BOUNDED_TYPES and c.name not in (TIME, *diffs))[:16]


def compact_trace(
    spark: Callable[[], SparkSession],
    storage: Storage,
    log: Log,
    since: Time,
    diffs: tuple[str, ...],
    sort_by: tuple[str, ...] = (),
) -> Compaction:
    """Advances the trace to ``since`` (never back) and merges the files at or below it.

    Files that also hold later times are rewritten with those times kept. Nothing is rewritten if there is nothing to
    gain: if the contents are one file of insertions at most. ``spark`` is called where the driver does not merge them.
    """
    since = max(since, log.frontiers.since)
    touched, summands = between(log.files, -1, since), log.summands(since)
    before = (total_rows(log.files), len(log.files))
    written: tuple[DataFile, ...] = ()
    if len(summands) <= 1 and inserts_only(summands):
        touched = tuple(file for file in touched if file not in summands)
    else:
        written, kept = _Merging(storage, log, summands, since, diffs, sort_by).done(spark)
        touched = tuple(file for file in touched if file.path not in kept)
    reached("compaction: written")
    moves = touched or written or since > log.frontiers.since
    made = log.commit(Commit(add=written, remove=touched, since=since, changes_data=False)) if moves else log
    return Compaction(made, before[0], total_rows(made.files), before[1], len(made.files))


@dataclass(frozen=True)
class _Merging:
    """Files that are merged into others, with times before ``since`` as ``since``, and sums of ``diffs``."""

    storage: Storage
    log: Log
    files: tuple[DataFile, ...]
    since: Time
    diffs: tuple[str, ...]
    sort_by: tuple[str, ...]

    def done(self, spark: Callable[[], SparkSession]) -> tuple[tuple[DataFile, ...], frozenset[str]]:
        """What is written, and the paths of the files that stay."""
        storage, log = self.storage, self.log
        table = merged(storage, log.uri, self.files, log.schema, self.since, self.diffs, self.sort_by)
        if table is not None:
            return tuple(self._written(table)), frozenset()
        return self._by_ranges() or (self._by_spark(spark()), frozenset())

    def _by_ranges(self) -> tuple[tuple[DataFile, ...], frozenset[str]] | None:
        """None where files are no ranges of the first column of ``sort_by``."""
        storage, log = self.storage, self.log
        by = self.sort_by[:1]
        found = ranges(storage, log.uri, self.files, log.schema, by[0], ROWS_PER_FILE) if by else None
        if found is None:
            return None
        written: list[DataFile] = []
        replaced = {file.path for file in found.loose}
        for own, others in found.parts:
            tables = [read_files(storage, log.uri, own, log.schema)] if own else []
            sums = summed(pa.concat_tables([*tables, others]), self.since, self.diffs, self.sort_by)
            if sums is None:
                remove_files(storage, log.uri, written)
                return None
            written += self._written(sums)
            replaced |= {file.path for file in own}
        return tuple(written), frozenset(file.path for file in self.files) - replaced

    def _by_spark(self, spark: SparkSession) -> tuple[DataFile, ...]:
        """Written by one job; partitions are ranges of ``sort_by``."""
        log, storage = self.log, self.storage
        frame = updates(spark, log.uri, self.files, log.schema)
        advanced = frame.withColumn(TIME, F.greatest(F.col(TIME), F.lit(self.since).cast("bigint")))
        sums = consolidate(advanced, self.diffs).select(*map(quoted, log.schema.names))
        parts = max(1, -(-total_rows(self.files) // ROWS_PER_FILE))
        if self.sort_by:
            columns = [quoted(name) for name in self.sort_by]
            sums = sums.repartitionByRange(parts, *columns).sortWithinPartitions(*columns)
        else:
            sums = sums.coalesce(parts)
        bounded = _bounded(log.schema, self.diffs)
        return write_spark(storage, log.uri, sums, bounded, is_arranged=bool(self.sort_by))

    def _written(self, table: pa.Table) -> Iterator[DataFile]:
        log, bounded = self.log, _bounded(self.log.schema, self.diffs)
        for start in range(0, len(table), ROWS_PER_FILE):
            yield write_arrow(self.storage, log.uri, table.slice(start, ROWS_PER_FILE), log.schema, bounded)
