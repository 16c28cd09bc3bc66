"""Minima and maxima inside a recursion: compared with what a group had, recomputed only where that may have gone.

The law is that of ``extremes``, for groups whose number of rows is not kept: a group without a value that loses rows
has to be looked at, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.iterate import Variable
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.extremes import better, lost, seen
from dbt_incremental_dd.render.outputs import NEW, OLD, in_out

_WAS, _COMES, _GOES, _LOST = "dd_was", "dd_comes", "dd_goes", "dd_lost"


@dataclass(frozen=True)
class Compared:
    """The touched groups' rows before and now; and the keys of those groups whose rows of now have to be found anew,
    which are not among them."""

    old: Relation | None
    new: Relation | None
    lost: Relation | None


def is_extreme(variable: Variable) -> bool:
    """Whether the variable is nothing but minima and maxima of groups."""
    node = variable.accumulate
    if node is None or not node.extremes or node.accumulators or node.global_row or not node.keys:
        return False
    return all(sql == id for id, sql in node.outputs)


def compare(node: Accumulate, touched: Relation, change: Relation | None, former: Relation | None) -> Compared:
    """``touched``: the groups' keys, equal ones perhaps; ``change``: the input's rows that came and went, consolidated;
    ``former``: the groups' rows before."""
    if change is None:
        return Compared(former, former, None)
    wide = _beside(node, touched.distinct(node.keys), change, former).materialized()
    keys = [(key, key) for key in node.keys]
    ids = [id for id, _ in node.outputs]
    old = None if former is None else wide.filter(Expr(f"{_WAS} > 0")).select([*keys, *((id, OLD + id) for id in ids)])
    is_ = f"({_WAS} > 0 OR {_COMES} > 0) AND NOT {_LOST}"
    new = wide.filter(Expr(is_)).select([*keys, *((id, NEW + id) for id in ids)])
    gone = wide.filter(Expr(_LOST)).select(keys)
    return Compared(None if old is None else _each_once(old), _each_once(new), _each_once(gone))


def _beside(node: Accumulate, groups: Relation, change: Relation, former: Relation | None) -> Relation:
    """For each group: whether it was there, old and new extremes, and whether they are lost."""
    ends = [Measure(_COMES, "max", Expr.column(DIFF), "BIGINT"), Measure(_GOES, "min", Expr.column(DIFF), "BIGINT")]
    sums = change.group_by(node.keys, [*ends, *(m for e in node.extremes for m in seen(e))])
    names = [_COMES, _GOES, *(in_out(kind, e) for e in node.extremes for kind in ("in", "out"))]
    wide = groups.lookup(sums, node.keys, [(name, name) for name in names], of_groups=True)
    old = [(OLD + e.id, e.id) for e in node.extremes]
    if former is None:
        nulls = [(OLD + id, Expr(f"CAST(NULL AS {dtype})")) for id, dtype in node.extreme_types]
        wide = wide.extend([*nulls, (_WAS, Expr("0L"))])
    else:
        wide = wide.lookup(former, node.keys, [*old, (_WAS, DIFF)], of_groups=True)
    wide = wide.update([(name, Expr(f"coalesce({name}, 0L)")) for name in (_WAS, _COMES, _GOES)])
    changed = (_is_lost(e, OLD + e.id, in_out("in", e), in_out("out", e)) for e in node.extremes)
    new = [(NEW + e.id, Expr(better(e, OLD + e.id, in_out("in", e)))) for e in node.extremes]
    return wide.extend([*new, (_LOST, Expr(f"{_GOES} < 0 AND ({' OR '.join(changed)})"))])


def _is_lost(e: Extreme, old: str, came: str, went: str) -> str:
    return f"({lost(e, old, came, went, is_consolidated=True)} OR {old} IS NULL)"


def _each_once(rows: Relation) -> Relation:
    return replace(rows, positive=True, consolidated=True)
