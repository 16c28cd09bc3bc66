"""Operators that recompute affected groups, and the fallback, whose one group is everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, StoredOutput, TopGroups, WindowGroups
from dbt_incremental_dd.differential.state import OutputState, State
from dbt_incremental_dd.local.windows import with_windows
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.render.keys import Keys, keys_of
from dbt_incremental_dd.render.local_top import groups_locally
from dbt_incremental_dd.render.ranked import top
from dbt_incremental_dd.render.rows import Rows, consolidated, expanded, negated, plus, positive, repeated
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.files import inserts_only, matching
from dbt_incremental_dd.trace.local import Local, read_local
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.read import quoted, updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.context import Context
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The affected groups' new rows minus their old ones; stored, where nothing else stores them."""
    assert isinstance(node, StoredOutput)
    always = r.context.from_nothing or (isinstance(node, Recompute) and node.temporal)
    if not always and all(r.delta(child) is None for child in node.inputs):
        return None
    return kept(node, r, moved(node, r, None if r.context.from_nothing else _affected(node, r)))


def moved(node: StoredOutput, r: OperatorRun, keys: Keys | None) -> Rows | None:
    """The new rows of these groups, or all, minus their old ones."""
    new = _computed(node, r, keys)
    if r.context.from_nothing:
        return new
    old = stored(node, r, new=False, keys=keys)
    new = r.context.localized(new) if new and old and old.local is not None else new
    change = plus([new, negated(old)])
    return consolidated(change) if change else None


def kept(node: StoredOutput, r: OperatorRun, change: Rows | None) -> Rows | None:
    """The change of the output, stored where nothing else stores it."""
    if isinstance(node.old, State) and change is not None:
        return r.context.inner.of(node.old).append(r.context.localized(change), r.context.at)
    return change


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """What is stored of the operator's output."""
    assert isinstance(node, StoredOutput)
    if new:
        r.delta(node)
        if isinstance(node.old, OutputState):
            rows = _computed(node, r, None)
            return rows if rows is None or keys is None else keys.restricted(rows)
    return stored(node, r, new=new, keys=keys)


def _affected(node: StoredOutput, r: OperatorRun) -> Keys | None:
    """The groups that the input's delta touches; None: all."""
    if isinstance(node, Recompute) or not node.keys:
        return None
    change = r.small_delta(node.input)
    return restriction(node, change) if change is not None else None


def restriction(node: RecomputeGroups | TopGroups | WindowGroups, rows: Rows) -> Keys | None:
    """The groups of these rows; None: all."""
    return keys_of(rows, node.keys) if node.keys else None


def _computed(node: StoredOutput, r: OperatorRun, keys: Keys | None) -> Rows | None:
    """The operator over the new contents of its input, restricted to whole groups."""
    if isinstance(node, Recompute):
        return _fallback(node, r)
    return computed(node, r.contents(node.input, new=True, keys=keys), r.context)


def computed(node: Node, source: Rows | None, context: Context) -> Rows | None:
    """The operator over whole groups of rows."""
    assert isinstance(node, RecomputeGroups | TopGroups | WindowGroups)
    if source is None:
        return _over_nothing(node, context)
    local = _locally(node, positive(source))
    if local is not None:
        return local
    if isinstance(node, RecomputeGroups):
        frame = _aggregated(node, expanded(source))
        return Rows(_counted(frame), source.estimate, positive=True, consolidated=True)
    frame = top(node, expanded(source)) if isinstance(node, TopGroups) else _windowed(node, expanded(source))
    return Rows(_counted(frame), source.estimate, positive=True)


def _locally(node: StoredOutput, source: Rows) -> Rows | None:
    """The same on the driver; None where Spark has to do it."""
    if isinstance(node, TopGroups):
        return groups_locally(node, source)
    if not isinstance(node, WindowGroups) or not isinstance(source.source, Local):
        return None
    rows = source.source
    table = repeated(rows.table)
    found = with_windows(rows.with_table(table), node.functions)
    return None if found is None else Rows(found, table.num_rows, positive=True)


def _counted(frame: DataFrame) -> DataFrame:
    return frame.withColumn(DIFF, F.lit(1).cast("bigint"))


def _aggregated(node: RecomputeGroups, frame: DataFrame) -> DataFrame:
    aggregates = [F.expr(a.sql.sql).alias(a.id) for a in node.aggregates]
    if not aggregates:
        return frame.select(*node.keys).distinct()
    return frame.groupBy(*node.keys).agg(*aggregates)


def _over_nothing(node: StoredOutput, context: Context) -> Rows | None:
    """An aggregate without GROUP BY has a row over nothing too."""
    if not isinstance(node, RecomputeGroups) or not node.global_row:
        return None
    empty = context.empty(node.input_types)
    return Rows(_counted(_aggregated(node, empty)), 1, positive=True, consolidated=True)


def _windowed(node: WindowGroups, frame: DataFrame) -> DataFrame:
    return frame.select(*node.input.columns, *(F.expr(expr.sql).alias(id) for id, expr in node.functions))


def _fallback(node: Recompute, r: OperatorRun) -> Rows | None:
    views, estimate = [], 0
    for operand, names, types in zip(node.operands, node.names, node.operand_types, strict=True):
        rows = r.contents(operand, new=True)
        frame = r.context.empty(types) if rows is None else expanded(rows)
        estimate += rows.estimate if rows else 0
        renames = zip(operand.columns, names, strict=True)
        views.append(r.context.view(frame.select(*(F.col(id).alias(name) for id, name in renames))))
    sql = bind_now(node.sql, r.context.t1) if node.temporal else node.sql
    frame = r.context.spark.sql(sql.format(*views)).toDF(*node.ids)
    return Rows(_counted(frame), max(estimate, 1_000), positive=True)


def stored(node: StoredOutput, r: OperatorRun, *, new: bool, keys: Keys | None) -> Rows | None:
    """The operator's former output, from its own trace or from the model's."""
    if isinstance(node.old, State):
        rows = r.context.inner.of(node.old).contents(new=new, keys=keys)
        return None if rows is None else positive(rows)
    if r.context.output is None:
        return None
    return read_output(r, dict(node.old.names), keys) if node.old else None


def read_output(r: OperatorRun, names: dict[str, str], keys: Keys | None) -> Rows | None:
    """The model's output as of the run's start, its columns by ids."""
    assert r.context.output is not None
    log, schema = r.context.output
    files = matching(log.files, {names[id]: v for id, v in keys.values.items()}) if keys else log.files
    if not files:
        return None
    wanted = Schema((*(schema.select((name,)).columns[0] for name in names.values()), DIFF_COLUMN))
    inserts = inserts_only(files)
    if total_rows(files) <= limits.FOUND_ROWS and is_readable(wanted):
        table = _read_locally(r, log, files, wanted, keys, names)
        rows = Rows(Local(r.context.spark, table, wanted), table.num_rows, positive=inserts)
        rows = rows.renamed(list(names.items()))
        return positive(rows if keys is None else keys.restricted(rows))
    frame = updates(r.context.spark, log.uri, files, wanted)
    frame = frame.select(*(quoted(name).alias(id) for id, name in names.items()), DIFF)
    frame = keys.semi_join(frame) if keys else frame
    return positive(Rows(frame, total_rows(files), positive=inserts))


def _read_locally(
    r: OperatorRun, log: Log, files: Sequence[DataFile], wanted: Schema, keys: Keys | None, names: Mapping[str, str]
) -> pa.Table:
    values = {names[id]: v for id, v in keys.values.items()} if keys else {}

    def read() -> pa.Table:
        return read_local(r.context.storage, log.uri, files, wanted, values)

    return read() if keys is None else r.context.former.of(keys, read)
