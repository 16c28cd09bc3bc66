"""The first rows of everything, from the ones that are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Measure, Running
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.render.ranked import BEFORE, ordering, top

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_WAS, _LEFT = "dd_was_kept", "dd_kept_from_here"


def delta(node: KeptTop, run: OperatorRun) -> Relation | None:
    """The kept rows' new answer minus their old one."""
    from_nothing = run.context.from_nothing
    change = run.delta(node.input) if from_nothing else run.small_delta(node.input)
    if change is None:
        return None
    old = None if from_nothing else run.context.inner.of(node.kept).contents(new=False)
    was_complete = not from_nothing and _is_complete(node, run)
    found = None if from_nothing else _updated(node, run, change, old, complete=was_complete)
    if found is None:
        found = _first(node, run, change if from_nothing else run.contents(node.input, new=True))
    new, is_complete = found
    moved = plus([new, negated(old)])
    if moved is not None:
        run.context.inner.of(node.kept).append(moved.consolidate().collected(), run.context.at)
    if is_complete != was_complete:
        mark = Relation.one(run.context.workspace, []).map([], Expr("1L" if is_complete else "-1L"))
        run.context.inner.of(node.complete).append(mark, run.context.at)
    answer = plus([_answer(node, new), negated(_answer(node, old))])
    return None if answer is None else answer.consolidate()


def contents(node: KeptTop, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The answer of the kept rows."""
    if new:
        run.delta(node)
    rows = _answer(node, run.context.inner.of(node.kept).contents(new=new))
    return rows if rows is None or keys is None else keys.restricted(rows)


def _answer(node: KeptTop, kept: Relation | None) -> Relation | None:
    return None if kept is None else top(node, kept.multiset())


def _first(node: KeptTop, run: OperatorRun, source: Relation | None) -> tuple[Relation | None, bool]:
    """As many rows as are to be kept, of all; and whether these are all."""
    if source is None:
        return None, True
    most = node.needed + run.context.thresholds.kept_rows
    kept = source.multiset().first(ordering(node), most).collected()
    return kept, kept.estimate < most


def _updated(
    node: KeptTop, run: OperatorRun, change: Relation, old: Relation | None, *, complete: bool
) -> tuple[Relation | None, bool] | None:
    """The kept rows with the change, and whether they are all; None where that takes the whole input.

    Of the change only what comes before the last kept row is known to follow the kept ones, unless all are kept.
    """
    if not change.is_local:
        return None
    order, kept = ordering(node), _with_change(node, change, old)
    if not complete:
        from_here = Running(_LEFT, Expr.column(_WAS), through=True)
        kept = kept.running((), [item.reversed for item in order], [from_here]).filter(Expr(f"{_LEFT} > 0"))
    kept = kept.filter(Expr(f"{DIFF} > 0")).running((), order, [Running(BEFORE, Expr.column(DIFF))]).collected()
    if not complete and kept.count() < node.needed:
        return None
    first = kept.filter(Expr(f"{BEFORE} < {node.needed + run.context.thresholds.kept_rows}L"))
    found = replace(first.columns(node.columns), positive=True, consolidated=True)
    return found, complete and first.estimate == kept.estimate


def _with_change(node: KeptTop, change: Relation, old: Relation | None) -> Relation:
    """The rows of both, and whether each was kept."""
    marked = [change.columns(node.columns).extend([(_WAS, Expr("0L"))])]
    marked += [old.columns(node.columns).extend([(_WAS, Expr("1L"))])] if old is not None else []
    both = plus(marked)
    assert both is not None
    measures = [Measure(DIFF, "sum", Expr.column(DIFF), "BIGINT"), Measure(_WAS, "max", Expr.column(_WAS), "BIGINT")]
    return both.group_by(node.columns, measures)


def _is_complete(node: KeptTop, run: OperatorRun) -> bool:
    rows = run.context.inner.of(node.complete).contents(new=False)
    return rows is not None and not rows.collected().is_empty
