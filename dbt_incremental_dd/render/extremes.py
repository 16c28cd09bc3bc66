"""Minima and maxima of groups: compared with what is stored, recomputed only where the stored one may have gone.

The law: what came in is the group's new extreme where nothing of before was beyond it; what was there stays where only
lesser values went. A group is *lost* where what went out may have been the extreme, and what came in is not beyond it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.outputs import NEW, OLD, compared, in_out, replaced

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_BEST, _LOST, _FRESH = "dd_best_", "dd_lost", "dd_fresh_"


def seen(e: Extreme) -> list[Measure]:
    """The extreme of what comes in, and of what goes out."""
    return [
        _measure(in_out("in", e), e, f"CASE WHEN {DIFF} > 0 THEN {e.value.sql} END"),
        _measure(in_out("out", e), e, f"CASE WHEN {DIFF} < 0 THEN {e.value.sql} END"),
    ]


def lost(e: Extreme, old: str, came: str, went: str, *, is_consolidated: bool) -> str:
    """Whether the extreme may have gone, as SQL.

    What came has to be beyond what went. Equal is enough only of a consolidated delta: another may hold a row and its
    retraction.
    """
    at_least, more = (">=", ">") if e.maximum else ("<=", "<")
    beyond = at_least if is_consolidated else more
    hit = f"(coalesce({went} {at_least} {old}, FALSE) OR ({went} IS NOT NULL AND {old} IS NULL))"
    return f"({hit} AND NOT coalesce({came} {beyond} {went}, FALSE))"


def better(e: Extreme, one: str, other: str) -> str:
    """The more extreme of two values, as SQL; the other one where one is NULL."""
    return f"{'greatest' if e.maximum else 'least'}({one}, {other})"


def with_extremes(node: Accumulate, run: OperatorRun, sums: Relation, keys: Keys, change: Relation) -> Relation:
    """Old and new extremes beside the sums (``dd_old_<id>``, ``dd_new_<id>``), and their change stored.

    ``change``: the input's delta.
    """
    assert node.values is not None
    trace = run.context.inner.of(node.values)
    stored = None if run.context.from_nothing else trace.contents(new=False, keys=keys if node.keys else None)
    wide = _beside(node, sums, stored, OLD)
    best = [(_BEST + e.id, Expr(better(e, OLD + e.id, in_out("in", e)))) for e in node.extremes]
    gone = " OR ".join(_is_lost(e, change) for e in node.extremes)
    wide = wide.extend([*best, (_LOST, Expr(gone))])
    if change.positive:
        wide = wide.extend([(NEW + e.id, Expr(_BEST + e.id)) for e in node.extremes])
    else:
        wide = _recomputed(node, run, wide.materialized())
    wide = wide.materialized()
    trace.append(_change(node, wide).materialized(), run.context.at)
    return wide


def _is_lost(e: Extreme, change: Relation) -> str:
    return lost(e, OLD + e.id, in_out("in", e), in_out("out", e), is_consolidated=change.consolidated)


def _beside(node: Accumulate, rows: Relation, extremes: Relation | None, prefix: str) -> Relation:
    """The groups with their extremes of a relation beside them."""
    if extremes is None:
        return rows.extend([(prefix + id, Expr(f"CAST(NULL AS {dtype})")) for id, dtype in node.extreme_types])
    return rows.lookup(extremes, node.keys, [(prefix + e.id, e.id) for e in node.extremes], of_groups=True)


def _recomputed(node: Accumulate, run: OperatorRun, wide: Relation) -> Relation:
    """With the new extremes: of lost groups from the input's contents."""
    groups = wide.filter(Expr(_LOST))
    if groups.is_empty:
        return wide.extend([(NEW + e.id, Expr(_BEST + e.id)) for e in node.extremes])
    source = run.contents(node.input, new=True, keys=keys_of(groups, node.keys) if node.keys else None)
    values = [_measure(e.id, e, e.value.sql) for e in node.extremes]
    fresh = None if source is None else source.multiset().group_by(node.keys, values)
    wide = _beside(node, wide, fresh, _FRESH)
    chosen = (f"CASE WHEN {_LOST} THEN {_FRESH}{e.id} ELSE {_BEST}{e.id} END" for e in node.extremes)
    return wide.extend([(NEW + e.id, Expr(sql)) for e, sql in zip(node.extremes, chosen, strict=True)])


def _change(node: Accumulate, wide: Relation) -> Relation:
    """The stored extremes' delta: a row for each group that has rows."""
    ids = [e.id for e in node.extremes]
    was, is_ = (f"CASE WHEN {count} > 0 THEN 1L ELSE 0L END" for count in (f"{OLD}{DIFF}", f"({OLD}{DIFF} + {DIFF})"))
    return replaced(compared(wide, ids, was=was, is_=is_), node.keys, ids)


def _measure(name: str, e: Extreme, value: str) -> Measure:
    return Measure(name, "max" if e.maximum else "min", Expr(value), e.dtype)
