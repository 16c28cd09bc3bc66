"""How many rows of a semi, anti or left join's right side each key has: kept where finding these rows takes a scan.

Whether a left row has a match is then known without them. Of the left rows, a change dR of the right side moves those
whose keys have their first match now (``appeared``), or have lost their last one (``gone``):

    d(L semi R) = L|appeared - L|gone        d(L anti R) = L|gone - L|appeared
    d(L left R) = L join dR, and of the left rows that have no match, beside NULLs, those of the anti join

with L the old left rows. The counts are a state of the model, made by the first run that has looked for a few keys
among many rows that are in another order, as arrangements are (``render.arranged``).
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_BEFORE = "dd_before"
_PREFIX = "matches."


def are_kept(node: Node, run: OperatorRun) -> bool:
    """Whether the node is a join with such a state, which each run brings to its end."""
    if not isinstance(node, LeftLinearJoin) or run.event is not None or run.context.from_nothing:
        return False
    return can_be_kept(node) and run.context.inner.has(_state(node).name)


def can_be_kept(node: LeftLinearJoin) -> bool:
    """Whether equal keys alone make a match."""
    plain = all(e.left.as_column and e.right.as_column and not e.null_safe for e in node.equalities)
    return bool(node.equalities) and plain and not node.residual and len(_by(node)) == len(node.equalities)


def build(node: LeftLinearJoin, run: OperatorRun) -> None:
    """Counts all right rows as of the run's end. The time does not count as the delta's."""
    started = time.monotonic()
    with run.context.workspace.building():
        rows = run.contents(node.right, new=True, keys=None)
    if rows is not None:
        run.context.report(f"a join's matches are counted, for its keys are looked for among {rows.estimate:,} rows")
        run.context.inner.of(_state(node)).append(_counted(node, rows), run.context.at)
    run.context.once_seconds += time.monotonic() - started


def advance(node: LeftLinearJoin, run: OperatorRun, changed: Relation) -> Relation:
    """Adds a change of the right side to the counts. Returns the keys that appeared, with a diff of 1, and those that
    are gone, with -1."""
    trace = run.context.inner.of(_state(node))
    counts = _counted(node, changed).localized(run.context.thresholds.found_rows)
    keys = keys_of(counts, _columns(node))
    before = trace.contents(new=False, keys=keys, positive=False)
    trace.append(counts, run.context.at)
    if before is None:
        wide = counts.extend([(_BEFORE, Expr("0L"))])
    else:
        wide = counts.lookup(before, _columns(node), [(_BEFORE, DIFF)], of_groups=True)
    was, is_ = f"coalesce({_BEFORE}, 0L) > 0", f"coalesce({_BEFORE}, 0L) + {DIFF} > 0"
    moved = Expr(f"CASE WHEN {is_} AND NOT {was} THEN 1L WHEN {was} AND NOT {is_} THEN -1L ELSE 0L END")
    outputs = [(id, Expr.column(id)) for id in _columns(node)]
    return wide.map(outputs, moved).filter(Expr(f"{DIFF} <> 0L")).collected()


def contents(node: LeftLinearJoin, run: OperatorRun, keys: Keys | None) -> Relation | None:
    """The keys that have matches at the run's end, after ``advance``."""
    found = run.context.inner.of(_state(node)).contents(new=True, keys=keys, positive=False)
    return None if found is None else found.filter(Expr(f"{DIFF} > 0L")).once()


def _counted(node: LeftLinearJoin, rows: Relation) -> Relation:
    keys = _columns(node)
    rows = rows.columns(keys).filter(Expr(" AND ".join(f"{Expr.column(id).sql} IS NOT NULL" for id in keys)))
    return rows.group_by(keys, [Measure(DIFF, "sum", Expr(DIFF), "BIGINT")]).filter(Expr(f"{DIFF} <> 0L"))


def _by(node: LeftLinearJoin) -> dict[Id, Id]:
    """The right side's keys, and what each is equal to."""
    return {str(e.right.as_column): str(e.left.as_column) for e in node.equalities}


def _columns(node: LeftLinearJoin) -> tuple[Id, ...]:
    return tuple(_by(node))


def _state(node: LeftLinearJoin) -> State:
    """Named by what tells the join from all others of the plan."""
    told = repr((node.kind, node.left.columns, node.right.columns, sorted(_by(node).items())))
    columns = _columns(node)
    return State(f"{_PREFIX}{hashlib.sha256(told.encode()).hexdigest()[:12]}", columns, columns)
