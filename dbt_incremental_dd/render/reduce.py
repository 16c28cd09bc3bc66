"""Grouped aggregation by accumulators.

The law: a group's sums change by the sums of its input's change; its output changes from what the old sums give to what
the new ones do. Extremes are kept as values beside the sums (``extremes``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.extremes import seen, with_extremes
from dbt_incremental_dd.render.outputs import (
    OLD,
    compared,
    in_out,
    multiplicity,
    new_outputs,
    old_outputs,
    replaced,
    sum_types,
)

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_FORMER = "dd_former_"


def delta(node: Accumulate, run: OperatorRun) -> Relation | None:
    """Adds the input's delta, summed by group, to the accumulators; gives touched groups' outputs, new minus old."""
    change = run.delta_at_hand(node.input, run.context.thresholds.task_rows)
    if change is None:
        return _first_global_row(node, run)
    state, from_nothing = run.context.inner.of(node.sums), run.context.from_nothing
    sums = summed(node, change)
    # Where the groups are known before they are summed, one query gives all that is to be known of them.
    at_once = change.groups_locally(node.keys) and not sums.is_local and not from_nothing and not node.extremes
    if not at_once:
        sums = sums.localized(run.context.thresholds.local_rows if from_nothing else run.context.thresholds.found_rows)
        sums = sums.materialized() if node.extremes else sums
        stored = state.append(sums, run.context.at)
        sums = sums if node.extremes else stored
        if sums.is_empty:
            return _first_global_row(node, run)
        if from_nothing and not node.extremes:
            return finished(node, sums)
    keys = keys_of(change if at_once else sums, node.keys)
    before = None if from_nothing else state.contents(new=False, keys=keys if node.keys else None, positive=False)
    wide = _beside_former(node, sums, before)
    if node.extremes:
        wide = with_extremes(node, run, wide, keys, change)
    wide = _compared(node, wide, from_nothing=from_nothing)
    if at_once:
        wide = wide.localized(run.context.thresholds.found_rows)
        state.append(wide, run.context.at)
    return replaced(wide, node.keys, node.order_of_outputs)


def contents(node: Accumulate, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The outputs of the stored accumulators."""
    if new:
        run.delta(node)
    below = keys.only(node.keys) if keys and set(keys.columns) & set(node.keys) else None
    stored = run.context.inner.of(node.sums).contents(new=new, keys=below, positive=False)
    if stored is None or (node.global_row and stored.is_local and stored.is_empty):
        return _empty_global_row(node, run)
    rows = finished(node, _whole(node, run, stored, new=new, keys=below))
    rows = rows.localized(run.context.thresholds.found_rows) if stored.is_local else rows
    if keys is None or keys.advisory or (below and len(below.columns) == len(keys.columns)):
        return rows
    return keys.restricted(rows)


def summed(node: Accumulate, change: Relation) -> Relation:
    """The input's delta summed by group: keys, ``dd_diff``, accumulators, and the extremes in and out."""
    sums = [Measure(DIFF, "sum", Expr.column(DIFF), "BIGINT")]
    sums += [Measure(a.name, "sum", Expr(a.value), a.dtype) for a in node.accumulators]
    grouped = change.group_by(node.keys, [*sums, *(m for e in node.extremes for m in seen(e))])
    if change.positive:
        return grouped
    touched = [f"{m.name} <> 0" for m in sums]
    touched += [f"{in_out(kind, e)} IS NOT NULL" for e in node.extremes for kind in ("in", "out")]
    return grouped.filter(Expr(" OR ".join(touched)))


def finished(node: Accumulate, sums: Relation) -> Relation:
    """The outputs of whole accumulators, extremes beside them."""
    outputs = [(id, Expr.column(id)) for id in node.keys] + [(id, Expr(sql)) for id, sql in node.outputs]
    rows = sums.map(outputs, Expr(multiplicity(node, DIFF)))
    rows = rows if node.global_row else rows.filter(Expr(f"{DIFF} > 0"))
    return replace(rows, estimate=sums.estimate, positive=True, consolidated=True)


def _beside_former(node: Accumulate, sums: Relation, before: Relation | None) -> Relation:
    """The sums' change with each sum's old value beside it (``dd_old_<name>``), 0 where the group is new."""
    types = sum_types(node)
    if before is None:
        return sums.extend([(OLD + name, Expr(f"CAST(0 AS {dtype})")) for name, dtype in types.items()])
    found = sums.lookup(before, node.keys, [(_FORMER + name, name) for name in types], of_groups=True)
    return found.extend([(OLD + n, Expr(f"coalesce({_FORMER}{n}, CAST(0 AS {t}))")) for n, t in types.items()])


def _compared(node: Accumulate, wide: Relation, *, from_nothing: bool) -> Relation:
    """With old and new outputs."""
    wide = wide.extend([*new_outputs(node), *old_outputs(node)])
    was = "0L" if from_nothing else multiplicity(node, f"{OLD}{DIFF}")
    return compared(wide, node.order_of_outputs, was=was, is_=multiplicity(node, f"({OLD}{DIFF} + {DIFF})"))


def _whole(node: Accumulate, run: OperatorRun, sums: Relation, *, new: bool, keys: Keys | None) -> Relation:
    """Stored accumulators with the extremes of their groups."""
    rows = sums if sums.is_local or not node.global_row else _one_row(node, sums)
    if node.values is None:
        return rows
    values = run.context.inner.of(node.values).contents(new=new, keys=keys)
    if values is None:
        return rows.extend([(id, Expr(f"CAST(NULL AS {dtype})")) for id, dtype in node.extreme_types])
    return rows.lookup(values.multiset(), node.keys, [(e.id, e.id) for e in node.extremes], of_groups=True)


def _one_row(node: Accumulate, sums: Relation) -> Relation:
    """The accumulators of everything, zeros where nothing is left."""
    return sums.group_by((), [Measure(name, "sum", Expr(name), dtype) for name, dtype in sum_types(node).items()])


def _first_global_row(node: Accumulate, run: OperatorRun) -> Relation | None:
    """Without GROUP BY there is a row from the first time on, also over nothing."""
    return _empty_global_row(node, run) if run.context.from_nothing else None


def _empty_global_row(node: Accumulate, run: OperatorRun) -> Relation | None:
    if not node.global_row:
        return None
    zeros = [(name, Expr(f"CAST(0 AS {dtype})")) for name, dtype in sum_types(node).items() if name != DIFF]
    nulls = [(id, Expr(f"CAST(NULL AS {dtype})")) for id, dtype in node.extreme_types]
    nothing = Relation.one(run.context.workspace, [*zeros, *nulls]).map(
        [(name, Expr.column(name)) for name, _ in (*zeros, *nulls)], Expr("0L")
    )
    return finished(node, nothing)
