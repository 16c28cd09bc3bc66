"""The model's own batch: the plan's delta under the output's names, consolidated, stamped and written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.inner import orderable
from dbt_incremental_dd.render.rows import Rows, consolidated, negated, plus
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.stored_plan import Compiled
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES, is_readable
from dbt_incremental_dd.trace.counts import count, count_stored
from dbt_incremental_dd.trace.layout import Place, Storage
from dbt_incremental_dd.trace.local import Local, read_local
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import quoted, updates
from dbt_incremental_dd.trace.write import remove_files, write_arrow, write_spark


@dataclass(frozen=True)
class Batch:
    """What was written; rows are counted with their multiplicity."""

    files: tuple[DataFile, ...]
    added: int
    removed: int


def stored_names(schema: Schema) -> Schema:
    """The columns of a model's trace."""
    return Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN))


def output_delta(context: Context, compiled: Compiled, rows: Rows | None, subtract: bool) -> Rows | None:
    """The rows under the output's names and types; with ``subtract``, minus what the output holds."""
    named = None
    if rows is not None:
        pairs = zip(compiled.plan.root.columns, compiled.plan.names, compiled.schema, strict=True)
        named = replace(rows.renamed([(name, id) for id, name, _ in pairs]), consolidated=rows.consolidated)
    if not subtract:
        positive_anyway = named is not None and named.positive and context.from_nothing
        return named if named is None or positive_anyway else consolidated(named)
    named = None if named is None else context.localized(named)
    change = plus([named, negated(_stored(context, named))])
    return None if change is None else consolidated(change)


def _stored(context: Context, beside: Rows | None) -> Rows | None:
    """What the output holds; on the driver if what it is put together with is there, too."""
    assert context.output is not None
    log, schema = context.output
    wanted, count = schema_with_diff(schema), total_rows(log.files)
    if not log.files:
        return None
    if count <= limits.FOUND_ROWS and is_readable(wanted) and (beside is None or beside.local is not None):
        table = read_local(context.storage, log.uri, log.files, wanted)
        return Rows(Local(context.spark, table, wanted), count)
    return Rows(updates(context.spark, log.uri, log.files, wanted), count)


def schema_with_diff(schema: Schema) -> Schema:
    """The columns and ``dd_diff``."""
    return Schema((*schema.columns, DIFF_COLUMN))


def arranged(request: ModelRequest, schema: Schema) -> tuple[str, ...]:
    """The columns that the model's files are sorted by, as they are spelt in its schema. Raises ConfigError for one
    that is none of the model's, or whose values have no order."""
    wanted = request.config.arranged_by[0] if request.config.arranged_by else ()
    known = {column.name.lower(): column.name for column in schema}
    found = []
    for name in wanted:
        column = known.get(str(name).lower())
        if column is None:
            columns = ", ".join(schema.names)
            raise ConfigError(
                f"{request.name}: arranged_by names {name}, which is no column of it", f"It has {columns}."
            )
        if not orderable(schema, (column,)):
            raise ConfigError(f"{request.name}: files cannot be sorted by {name}", "Remove it from arranged_by.")
        found.append(column)
    return tuple(found)


def write_batch(
    context: Context, place: Place, schema: Schema, change: Rows | None, t: Time, arranged_by: tuple[str, ...]
) -> Batch:
    """Writes the change as files of the model's trace, stamped ``t``; nothing is visible yet."""
    if change is None:
        return Batch((), 0, 0)
    stored = stored_names(schema)
    bounded = tuple(c.name for c in schema if c.type in BOUNDED_TYPES)[:16]
    change = context.localized(change)
    if change.local is not None:
        return _write_local(context, place, stored, change.local, t, bounded, arranged_by)
    frame = change.frame.select(*(quoted(c.name) for c in schema), F.lit(t).cast("bigint").alias(TIME), F.col(DIFF))
    if arranged_by:
        frame = frame.repartitionByRange(*map(quoted, arranged_by)).sortWithinPartitions(*map(quoted, arranged_by))
    files = write_spark(context.storage, place.trace_uri, frame, bounded, is_arranged=bool(arranged_by))
    added, removed = count_stored(context.storage, place.trace_uri, files)
    return Batch(files, added, removed)


def discard(storage: Storage, place: Place, batch: Batch) -> None:
    """Removes the files of a batch that is not to be committed."""
    remove_files(storage, place.trace_uri, batch.files)


def _write_local(
    context: Context,
    place: Place,
    stored: Schema,
    table: pa.Table,
    t: Time,
    bounded: tuple[str, ...],
    arranged_by: tuple[str, ...],
) -> Batch:
    if table.num_rows == 0:
        return Batch((), 0, 0)
    if arranged_by:
        table = table.sort_by([(name, "ascending") for name in arranged_by])
    table = table.append_column(TIME, pa.array([t] * table.num_rows, pa.int64())).select(list(stored.names))
    added, removed = count(table[DIFF])
    return Batch((write_arrow(context.storage, place.trace_uri, table, stored, bounded),), added, removed)
