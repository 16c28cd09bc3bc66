"""The first rows of each group, from those that are stored.

The stored rows of a group are all that come before the last of them in the operator's order, and those inserted since
are in the change. Together they are the new answer where enough of them come no later than that last row did; where
fewer rows were stored than are asked for, they are the whole group. Other groups are computed from the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.groups import TopGroups
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.engine import Measure, Running
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.render import groups
from dbt_incremental_dd.render.ranked import ordering, top

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

contents = groups.contents

_WAS, _LEFT, _STORED, _FOUND = "dd_was_stored", "dd_stored_from_here", "dd_stored", "dd_found"


def delta(node: TopGroups, run: OperatorRun) -> Relation | None:
    """The affected groups' new rows minus their old ones."""
    if not node.keys or node.limit is None or node.offset or run.context.from_nothing or run.event is not None:
        return groups.delta(node, run)
    change = run.small_delta(node.input)
    if change is None:
        return None
    keys = keys_of(change, node.keys)
    if not change.groups_locally(node.columns) or not keys.is_local:
        return groups.delta(node, run)
    old = groups.stored(node, run, new=False, keys=keys)
    old = None if old is None else old.localized(run.context.thresholds.found_rows)
    if old is not None and not old.is_local:
        return groups.delta(node, run)
    return groups.kept(node, run, _moved(node, run, change, old, keys))


def _moved(node: TopGroups, run: OperatorRun, change: Relation, old: Relation | None, keys: Keys) -> Relation | None:
    """The change of the answer. ``old``: what is stored of the groups that ``keys`` has."""
    stored = _counted(node, old, _STORED)
    rows = _first(node, change, old, stored)
    told, others = _told(node, rows, stored, keys)
    new = top(node, rows.columns(node.columns).restrict(told, node.keys).multiset())
    before = None if old is None else old.restrict(told, node.keys)
    rest = None if others.is_empty else groups.moved(node, run, keys_of(others, node.keys))
    moved = plus([new, negated(before), rest])
    return None if moved is None else moved.consolidate()


def _first(node: TopGroups, change: Relation, old: Relation | None, stored: Relation | None) -> Relation:
    """Stored rows and new ones, as far as nothing else can come before them. ``stored``: how many each group has."""
    marked = [change.columns(node.columns).extend([(_WAS, Expr("0L"))])]
    marked += [] if old is None else [old.columns(node.columns).extend([(_WAS, Expr("1L"))])]
    both = plus(marked)
    assert both is not None
    measures = [Measure(DIFF, "sum", Expr(DIFF), "BIGINT"), Measure(_WAS, "max", Expr(_WAS), "BIGINT")]
    rows = both.group_by(node.columns, measures)
    backwards = [item.reversed for item in ordering(node)]
    rows = rows.running(node.keys, backwards, [Running(_LEFT, Expr(_WAS), through=True)])
    rows = _beside(rows, stored, node, _STORED)
    return rows.filter(Expr(f"({_LEFT} > 0L OR {_STORED} < {node.limit}L) AND {DIFF} > 0L"))


def _told(node: TopGroups, rows: Relation, stored: Relation | None, keys: Keys) -> tuple[Relation, Relation]:
    """The groups whose answer is among these rows, and the others."""
    counted = _beside(keys.rows, stored, node, _STORED)
    counted = _beside(counted, _counted(node, rows, _FOUND), node, _FOUND)
    is_told = f"{_STORED} < {node.limit}L OR {_FOUND} >= {node.limit}L"
    told, others = (counted.filter(Expr(text)).columns(node.keys) for text in (is_told, f"NOT ({is_told})"))
    return told, others


def _counted(node: TopGroups, rows: Relation | None, name: str) -> Relation | None:
    """How many rows each group has."""
    return None if rows is None else rows.group_by(node.keys, [Measure(name, "sum", Expr(DIFF), "BIGINT")])


def _beside(rows: Relation, counted: Relation | None, node: TopGroups, name: str) -> Relation:
    """The rows with their group's count."""
    if counted is None:
        return rows.extend([(name, Expr("0L"))])
    rows = rows.lookup(counted, node.keys, [(name, name)])
    return rows.update([(name, Expr(f"coalesce({name}, 0L)"))])
