"""How many rows of a semi, anti or left join's right side match a key. A change's keys find the rows, and these are
counted; where finding them takes a scan, the counts of all keys are kept, and the rows are not read.

Of the left rows, a change dR of the right side moves those whose keys have their first match now (``appeared``), or
have lost their last one (``gone``):

    d(L semi R) = L|appeared - L|gone        d(L anti R) = L|gone - L|appeared
    d(L left R) = L join dR, and of the left rows that have no match, beside NULLs, those of the anti join

with L the old left rows. Kept counts are a state of the model, made by the first run that has looked for a few keys
among many rows that are in another order, as arrangements are (``render.arranged``). Where equal keys alone do not make
a match, single left rows take the keys' place (``render.outer_join``).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.reads import whole_bytes

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_COUNT = "dd_count"
_FOUND = f"coalesce({_COUNT}, 0L)"
_PREFIX = "matches."
COUNTED = Measure(DIFF, "sum", Expr(DIFF), "BIGINT")
"""The number of a group's rows, as a measure: the sum of their diffs."""


def are_kept(node: Node, run: OperatorRun) -> bool:
    """Whether the node is a join with such a state, which each run brings to its end."""
    if not isinstance(node, LeftLinearJoin) or run.event is not None or run.context.from_nothing:
        return False
    return are_by_keys(node) and run.context.inner.has(_state(node).name)


def are_by_keys(node: LeftLinearJoin) -> bool:
    """Whether equal keys alone make a match."""
    plain = all(e.left.as_column and e.right.as_column and not e.null_safe for e in node.equalities)
    return bool(node.equalities) and plain and not node.residual and len(_by(node)) == len(node.equalities)


def build(node: LeftLinearJoin, run: OperatorRun) -> None:
    """Counts all right rows as of the run's end. The time does not count as the delta's."""
    started = time.monotonic()
    with run.context.workspace.reading_all(whole_bytes(node.right, run.context)):
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
    return _moved(counts, before, _columns(node), was=_FOUND, now=f"{_FOUND} + {DIFF}").collected()


def moved(node: LeftLinearJoin, changed: Relation, right: Relation | None) -> Relation:
    """The keys that appeared and those that are gone, without a state: ``right`` has at least the new right rows of the
    keys that changed."""
    after = None if right is None else _counted(node, right)
    return first_or_last(_counted(node, changed).localized(), after, _columns(node)).localized()


def first_or_last(counts: Relation, after: Relation | None, columns: Sequence[Id]) -> Relation:
    """What has its first match now, with a diff of 1, and what has lost its last one, with -1.

    ``counts``: by how many each number of matches changed, with these columns and others; ``after``: the numbers now.
    """
    return _moved(counts, after, columns, was=f"{_FOUND} - {DIFF}", now=_FOUND)


def _moved(counts: Relation, found: Relation | None, columns: Sequence[Id], *, was: str, now: str) -> Relation:
    if found is None:
        wide = counts.extend([(_COUNT, Expr("0L"))])
    else:
        wide = counts.lookup(found, columns, [(_COUNT, DIFF)], of_groups=True)
    moved = Expr(f"CASE WHEN {now} > 0 AND {was} <= 0 THEN 1L WHEN {was} > 0 AND {now} <= 0 THEN -1L ELSE 0L END")
    outputs = [(id, Expr.column(id)) for id in counts.names if id != DIFF]
    return wide.map(outputs, moved).filter(Expr(f"{DIFF} <> 0L"))


def contents(node: LeftLinearJoin, run: OperatorRun, keys: Keys | None) -> Relation | None:
    """The keys that have matches at the run's end, after ``advance``."""
    found = run.context.inner.of(_state(node)).contents(new=True, keys=keys, positive=False)
    return None if found is None else found.filter(Expr(f"{DIFF} > 0L")).once()


def _counted(node: LeftLinearJoin, rows: Relation) -> Relation:
    keys = _columns(node)
    rows = rows.columns(keys).filter(Expr(" AND ".join(f"{Expr.column(id).sql} IS NOT NULL" for id in keys)))
    return rows.group_by(keys, [COUNTED]).filter(Expr(f"{DIFF} <> 0L"))


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
