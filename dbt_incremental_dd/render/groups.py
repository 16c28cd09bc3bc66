"""Operators that recompute affected groups, and the fallback, whose one group is everything."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, StoredOutput, TopGroups, WindowGroups
from dbt_incremental_dd.differential.state import OutputState, State
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.query import answer, no_rows, view
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.render.ranked import top
from dbt_incremental_dd.render.window_suffix import Suffix
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.files import inserts_only, matching
from dbt_incremental_dd.trace.log import total_rows

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: StoredOutput, run: OperatorRun) -> Relation | None:
    """The affected groups' new rows minus their old ones; stored, where nothing else stores them."""
    always = run.context.from_nothing or (isinstance(node, Recompute) and node.temporal)
    if not always and all(run.delta(child) is None for child in node.inputs):
        return None
    return kept(node, run, moved(node, run, None if run.context.from_nothing else _affected(node, run)))


def moved(node: StoredOutput, run: OperatorRun, keys: Keys | None) -> Relation | None:
    """The new rows of these groups, or all, minus their old ones."""
    if run.context.from_nothing:
        return _computed(node, run, keys)
    old = stored(node, run, new=False, keys=keys)
    if isinstance(node, WindowGroups) and _has_input(node, run):
        new = computed(node, _input_from(old, node, run, keys), run.context)
    else:
        new = _computed(node, run, keys)
    new = new.localized() if new and old and old.is_local else new
    if isinstance(node, WindowGroups):
        suffix = Suffix(node, run.small_delta(node.input))
        new, old = suffix.of(new), suffix.of(old)
    change = plus([new, negated(old)])
    return change.consolidate() if change else None


def _has_input(node: WindowGroups, run: OperatorRun) -> bool:
    """Whether what is stored has the columns of the input: a window adds columns to its rows and keeps them all."""
    if isinstance(node.old, State):
        return set(node.input.columns) <= set(node.old.columns)
    return run.context.output is not None and set(node.input.columns) <= {id for id, _ in node.old.names}


def _input_from(old: Relation | None, node: WindowGroups, run: OperatorRun, keys: Keys | None) -> Relation | None:
    """The input's new rows in these partitions: those of before, as they are stored, and its delta."""
    change = run.small_delta(node.input)
    if change is not None and keys is not None:
        change = keys.restricted(change)
    return plus([None if old is None else old.columns(node.input.columns), change])


def kept(node: StoredOutput, run: OperatorRun, change: Relation | None) -> Relation | None:
    """The change of the output, stored where nothing else stores it."""
    if isinstance(node.old, State) and change is not None:
        return run.context.inner.of(node.old).append(change.localized(), run.context.at)
    return change


def contents(node: StoredOutput, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """What is stored of the operator's output."""
    if new:
        run.delta(node)
        if isinstance(node.old, OutputState):
            rows = _computed(node, run, None)
            return rows if rows is None or keys is None else keys.restricted(rows)
    return stored(node, run, new=new, keys=keys)


def _affected(node: StoredOutput, run: OperatorRun) -> Keys | None:
    """The groups that the input's delta touches; None: all."""
    if isinstance(node, Recompute) or not node.keys:
        return None
    change = run.small_delta(node.input)
    return restriction(node, change) if change is not None else None


def restriction(node: RecomputeGroups | TopGroups | WindowGroups, rows: Relation) -> Keys | None:
    """The groups of these rows; None: all."""
    return keys_of(rows, node.keys) if node.keys else None


def _computed(node: StoredOutput, run: OperatorRun, keys: Keys | None) -> Relation | None:
    """The operator over the new contents of its input, restricted to whole groups."""
    if isinstance(node, Recompute):
        return _fallback(node, run)
    return computed(node, run.contents(node.input, new=True, keys=keys), run.context)


def computed(
    node: RecomputeGroups | TopGroups | WindowGroups, source: Relation | None, context: Context
) -> Relation | None:
    """The operator over whole groups of rows."""
    if source is None:
        return _over_nothing(node, context)
    if isinstance(node, TopGroups):
        return top(node, source.multiset())
    if isinstance(node, WindowGroups):
        return source.expand().columns(node.input.columns).window(node.functions)
    return _aggregated(node, source.expand())


def _aggregated(node: RecomputeGroups, rows: Relation) -> Relation:
    if not node.aggregates:
        return rows.distinct(node.keys)
    return rows.aggregate(node.keys, [(a.id, Expr(a.sql.sql)) for a in node.aggregates])


def _over_nothing(node: StoredOutput, context: Context) -> Relation | None:
    """An aggregate without GROUP BY has a row over nothing too."""
    if not isinstance(node, RecomputeGroups) or not node.global_row:
        return None
    return replace(_aggregated(node, no_rows(context.workspace, node.input_types)), estimate=1)


def _fallback(node: Recompute, run: OperatorRun) -> Relation | None:
    views, estimate = [], 0
    for operand, names, types in zip(node.operands, node.names, node.operand_types, strict=True):
        rows = run.contents(operand, new=True) or no_rows(run.context.workspace, types)
        estimate += rows.estimate
        views.append(view(rows.select(list(zip(names, operand.columns, strict=True)))))
    sql = bind_now(node.sql, run.context.t1) if node.temporal else node.sql
    return answer(run.context.workspace, sql.format(*views), node.ids, estimate=max(estimate, 1_000))


def stored(node: StoredOutput, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The operator's former output, from its own trace or from the model's."""
    if isinstance(node.old, State):
        rows = run.context.inner.of(node.old).contents(new=new, keys=keys)
        return None if rows is None else rows.multiset()
    if run.context.output is None:
        return None
    return read_output(run, dict(node.old.names), keys) if node.old else None


def read_output(run: OperatorRun, names: dict[str, str], keys: Keys | None) -> Relation | None:
    """The model's output as of the run's start, its columns by ids."""
    assert run.context.output is not None
    log, schema = run.context.output
    values = {names[id]: v for id, v in keys.values.items()} if keys else {}
    files = matching(log.files, values)
    if not files:
        return None
    wanted = Schema((*(schema.select((name,)).columns[0] for name in names.values()), DIFF_COLUMN))

    def load() -> pa.Table:
        together = None if keys is None else keys.together(names)
        return read_files(run.context.storage, log.uri, files, wanted, values, together)

    if total_rows(files) <= run.context.thresholds.found_rows and is_readable(wanted):
        table = load() if keys is None else run.context.former.of(keys, load)
        rows = Relation.of(run.context.workspace, table, wanted)
    else:
        rows = read(run.context.workspace, log.uri, files, wanted, most=0, values=values)
    rows = rows.select(list(names.items()))
    rows = rows if keys is None else keys.restricted(rows)  # what was found may be of more keys, and of other files
    return replace(rows, positive=inserts_only(files)).multiset()
