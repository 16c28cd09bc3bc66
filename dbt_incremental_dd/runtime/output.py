"""The model's own batch: the plan's delta under the output's names, consolidated, stamped and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.relation.stored import most_of, read, write
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.inner import orderable
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.stored_plan import Compiled
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES
from dbt_incremental_dd.trace.counts import count, count_stored
from dbt_incremental_dd.trace.files import inserts_only
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.write import remove_files


@dataclass(frozen=True)
class OutputDelta:
    """The model's change, consolidated, under the output's names. ``before`` and ``after``: all of its rows, where both
    are on the driver, as the change was computed from them."""

    change: Relation | None
    before: Relation | None = None
    after: Relation | None = None


@dataclass(frozen=True)
class WrittenBatch:
    """What was written; rows are counted with their multiplicity."""

    files: tuple[DataFile, ...]
    added: int
    removed: int


def stored_names(schema: Schema) -> Schema:
    """The columns of a model's trace."""
    return Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN))


Holds = Callable[[Relation | None], Relation | None]
"""What the output holds of the query's rows; on the driver if what it is put together with is there, too."""


def output_delta(context: Context, compiled: Compiled, rows: Relation | None, holds: Holds | None) -> OutputDelta:
    """The rows under the query's names and types, minus what the output ``holds``, if anything of it counts."""
    named = None
    if rows is not None:
        pairs = [(name, id) for id, name in zip(compiled.plan.root.columns, compiled.plan.names, strict=True)]
        named = replace(rows.select(pairs), consolidated=rows.consolidated)
    if holds is None:
        positive_anyway = named is not None and named.positive and context.from_nothing
        change = named if named is None or positive_anyway else named.consolidate()
        return OutputDelta(None if change is None else change.localized())
    named = None if named is None else named.localized()
    before = holds(named)
    difference = plus([named, negated(before)])
    change = None if difference is None else difference.consolidate().localized()
    if named is None or before is None or not (named.is_local and before.is_local):
        return OutputDelta(change)
    return OutputDelta(change, before, named)


def stored_rows(context: Context, beside: Relation | None, schema: Schema) -> Relation | None:
    """What the output holds, in columns of ``schema``; on the driver if what it is put together with is there, too."""
    assert context.output is not None
    log, _ = context.output
    files = log.summands(log.frontiers.last)
    if not files:
        return None
    wanted, most = schema_with_diff(schema), 0
    if beside is None or beside.is_local:
        most = most_of(context.workspace, files, wanted)
    rows = read(context.workspace, log.uri, files, wanted, most=most)
    return replace(rows, positive=inserts_only(files))


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
    context: Context,
    place: CollectionStore,
    schema: Schema,
    delta: OutputDelta,
    t: Time,
    arranged_by: tuple[str, ...],
    former: int | None,
) -> WrittenBatch:
    """Writes the change as files of the model's trace, stamped ``t``; nothing is visible yet. ``former``: the number of
    rows that the output holds, None if it is unknown."""
    change = delta.change
    if change is None:
        return WrittenBatch((), 0, 0)
    bounded = tuple(c.name for c in schema if c.type in BOUNDED_TYPES)[:16]
    stored, uri = stored_names(schema), place.trace_uri

    def written(rows: Relation, *, retracts_all: bool = False) -> tuple[DataFile, ...]:
        return write(rows, uri, stored, t, bounded=bounded, sort_by=arranged_by, retracts_all=retracts_all)

    if change.table is None:
        files = written(change)
        return WrittenBatch(files, *count_stored(context.storage, uri, files))
    added, removed = count(change.table.arrow[DIFF])
    replaced = _replaced(context, delta, removed, former) if former and removed >= _REPLACED else None
    if replaced is None:
        return WrittenBatch(written(change), added, removed)
    before, after = replaced
    return WrittenBatch((*written(before, retracts_all=True), *written(after)), added, removed)


_REPLACED = 10_000
"""Rows; reading the history of fewer costs little."""
_STAYING = 0.1
"""Share of the rows that may stay where all are retracted: each is inserted once more."""


def _replaced(context: Context, delta: OutputDelta, removed: int, former: int) -> tuple[Relation, Relation] | None:
    """The retractions of every former row, and the rows that are there instead, both on the driver; None where more
    than a few rows stay."""
    if removed == former and delta.change is not None and delta.change.consolidated and _holds_rows(context):
        went, came = delta.change.filter(Expr(f"{DIFF} < 0")), delta.change.filter(Expr(f"{DIFF} > 0"))
    elif delta.before is not None and delta.after is not None and removed >= (1 - _STAYING) * former:
        went, came = delta.before.multiset().negate(), delta.after.multiset()
    else:
        return None
    return (went, came) if went.is_local and came.is_local else None


def _holds_rows(context: Context) -> bool:
    """Whether the output is made of insertions alone. Then as many retractions as it has rows retract all of them."""
    if context.output is None:
        return False
    log, _ = context.output
    return inserts_only(log.summands(log.frontiers.last))


def discard(storage: Storage, place: CollectionStore, batch: WrittenBatch) -> None:
    """Removes the files of a batch that is not to be committed."""
    remove_files(storage, place.trace_uri, batch.files)
