"""Left outer, semi and anti joins, linear in their left input."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.render import matches
from dbt_incremental_dd.render.join import probe_keys, that_may_match

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


_COPIES = "dd_copies"
_FEW = 10_000
"""Number of left and right rows that are joined twice more quickly than their matches are counted."""


def delta(node: LeftLinearJoin, run: OperatorRun) -> Relation | None:
    """The left delta against the new right side, and the touched keys' old left rows against new minus old."""
    from_nothing = run.context.from_nothing
    moved = [] if from_nothing or run.delta(node.right) is None else _right_changed(node, run)
    left = run.delta_at_hand(node.left)
    if left is None:
        return plus(moved)
    keys = None if from_nothing else probe_keys(left, node.equalities)
    if node.kind != "left" and matches.are_kept(node, run):
        right = matches.contents(node, run, keys)
    else:
        right = run.contents(node.right, new=True, keys=keys)
    return plus([_join(node, left, right), *moved])


def _right_changed(node: LeftLinearJoin, run: OperatorRun) -> list[Relation | None]:
    changed = run.small_delta(node.right)
    assert changed is not None
    changed = that_may_match(changed, _from_the_right(node))
    if changed.is_local and changed.is_empty:
        return []
    if matches.are_kept(node, run):
        return _matches_changed(node, run, changed, matches.advance(node, run, changed))
    if matches.are_by_keys(node):
        return _matches_changed(node, run, changed, _moved(node, run, changed))
    left_keys, right_keys = _touched(node, changed)
    left = _old_left(node, run, left_keys)
    if left is None:
        return []
    right = run.contents(node.right, new=True, keys=right_keys)
    if left.is_local and right is not None:
        right = right.localized(run.context.thresholds.found_rows)
    if right is not None and _is_counted(left, changed, right):
        return _rows_changed(node, left, changed, right)
    new, old = _join(node, left, right), _join(node, left, _before(node, run, right, changed, right_keys))
    return _summed([new, negated(old)])


def _is_counted(left: Relation, changed: Relation, right: Relation) -> bool:
    """Whether to count the matches of single left rows: many rows, all on the driver, of types that it groups."""
    are_local = left.groups_locally(left.names) and changed.is_local and right.is_local
    return are_local and left.estimate + right.estimate > _FEW


def _rows_changed(node: LeftLinearJoin, left: Relation, changed: Relation, right: Relation) -> list[Relation | None]:
    """What the change makes of old left rows where equal keys alone do not make a match. Only left rows that match a
    row of the change can have their first match now, or lose their last one: theirs are counted. Each different left
    row counts once, and its copies multiply the result."""
    on = node.equalities, node.residual
    rows = left.join(changed.once(), "semi", *on).consolidate().extend([(_COPIES, Expr(DIFF))]).once()
    pairs = rows.join(changed, "inner", *on)
    own = node.left.columns
    counts = pairs.group_by((*own, _COPIES), [matches.COUNTED]).filter(Expr(f"{DIFF} <> 0L"))
    found = counts.once().join(right, "inner", *on).group_by(own, [matches.COUNTED])
    moved = matches.first_or_last(counts, found, own)
    appeared = moved.map([(id, Expr.column(id)) for id in own], Expr(f"{DIFF} * {_COPIES}"))
    if node.kind != "left":
        return _parts(node, appeared)
    return _parts(
        node, appeared, pairs.map([(id, Expr.column(id)) for id in node.columns], Expr(f"{DIFF} * {_COPIES}"))
    )


def _parts(node: LeftLinearJoin, appeared: Relation, paired: Relation | None = None) -> list[Relation | None]:
    """The join's change, by left rows that have their first match now or, negated, have lost their last one, and, of a
    left join, by the new pairs without the former ones."""
    if node.kind == "semi":
        return _summed([appeared])
    if node.kind == "anti":
        return _summed([appeared.negate()])
    return _summed([paired, _beside_nulls(node, appeared.negate())])


def _moved(node: LeftLinearJoin, run: OperatorRun, changed: Relation) -> Relation:
    """The keys that appeared and those that are gone, by the right rows of the touched keys. If finding them took a
    scan, matches are counted from now on."""
    _, keys = _touched(node, changed)
    before = run.probes.arrangements.sought
    right = run.contents(node.right, new=True, keys=keys)
    if right is not None and changed.is_local:
        right = right.localized(run.context.thresholds.found_rows)
    moved = matches.moved(node, changed, right)
    out_of_order = run.probes.arrangements.sought - before
    if out_of_order and run.event is None:
        run.probes.arrangements.withdraw(out_of_order)
        matches.build(node, run)
    return moved


def _matches_changed(
    node: LeftLinearJoin, run: OperatorRun, changed: Relation, moved: Relation
) -> list[Relation | None]:
    """What the change makes of old left rows, by the keys that appeared or are gone, without other right rows."""
    if node.kind != "left" and moved.is_local and moved.is_empty:
        return []
    left_keys, _ = _touched(node, changed if node.kind == "left" else moved)
    left = _old_left(node, run, left_keys)
    if left is None:
        return []
    appeared = left.join(moved, "inner", node.equalities).columns(node.left.columns)
    if node.kind != "left":
        return _parts(node, appeared)
    return _parts(node, appeared, left.join(changed, "inner", node.equalities).columns(node.columns))


def _old_left(node: LeftLinearJoin, run: OperatorRun, keys: Keys | None) -> Relation | None:
    left = run.contents(node.left, new=False, keys=keys)
    if left is not None and keys is not None and keys.is_local:
        return left.localized(run.context.thresholds.found_rows)
    return left


def _summed(parts: list[Relation | None]) -> list[Relation | None]:
    moved = plus(parts)
    return [moved.consolidate() if moved is not None and moved.is_local else moved]


def _before(
    node: LeftLinearJoin, run: OperatorRun, right: Relation | None, changed: Relation, keys: Keys | None
) -> Relation | None:
    """The old right rows of the touched keys; on the driver the new ones without the change, which has no others."""
    if right is None or keys is None or keys.advisory or not right.groups_locally(right.names):
        return run.contents(node.right, new=False, keys=keys)
    before = plus([right, changed.negate()])
    return None if before is None else before.multiset()


def _touched(node: LeftLinearJoin, changed: Relation) -> tuple[Keys | None, Keys | None]:
    """The changed right rows' keys, in terms of left and of right columns; exact on both sides, or None for both.

    Both sides must be restricted alike, by all equalities that are between plain columns.
    """
    pairs = {e.left.as_column: e.right.as_column for e in node.equalities if e.left.as_column and e.right.as_column}
    most = changed.workspace.thresholds.broadcast_rows
    if not pairs or changed.estimate > most or len(set(pairs.values())) < len(pairs):
        return None, None
    right = keys_of(changed, tuple(str(column) for column in pairs.values()))
    return right.renamed({str(right): str(left) for left, right in pairs.items()}), right


def contents(node: LeftLinearJoin, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The join of both sides' contents, the left restricted, the right to what the left then needs."""
    if keys is not None and _are_of_matches(node, keys):
        return _matched(node, run, new=new, keys=keys)
    below = keys.only(node.left.columns) if keys and set(keys.columns) & set(node.left.columns) else None
    left = run.contents(node.left, new=new, keys=below)
    if left is None:
        return None
    right_keys = None
    if below is not None and below.estimate <= run.context.thresholds.broadcast_rows:
        left = replace(left, estimate=min(left.estimate, 100 * below.estimate))
        right_keys = probe_keys(left, node.equalities)
    rows = _join(node, left, run.contents(node.right, new=new, keys=right_keys))
    if rows is None or keys is None or keys.advisory or (below and len(below.columns) == len(keys.columns)):
        return rows
    return keys.restricted(rows)


def _from_the_right(node: LeftLinearJoin) -> list[Equality]:
    """The equalities as the right side sees them, which then is the one that probes."""
    return [replace(one, left=one.right, right=one.left) for one in node.equalities]


def _are_of_matches(node: LeftLinearJoin, keys: Keys) -> bool:
    """Whether the keys are of the right side alone, and one column of them has no NULL: then only rows with a match
    have them."""
    return node.kind == "left" and set(keys.columns) <= set(node.right.columns) and bool(keys.values)


def _matched(node: LeftLinearJoin, run: OperatorRun, *, new: bool, keys: Keys) -> Relation | None:
    """The rows whose match has such keys: an inner join, which looks up the left side by what it finds of the right."""
    right = run.contents(node.right, new=new, keys=keys)
    if right is None:
        return None
    if keys.estimate <= run.context.thresholds.broadcast_rows:
        right = replace(right, estimate=min(right.estimate, 100 * keys.estimate))
        right = right.localized(run.context.thresholds.found_rows) if keys.is_local else right
    left = run.contents(node.left, new=new, keys=probe_keys(right, _from_the_right(node)))
    if left is None:
        return None
    left = left.localized(run.context.thresholds.found_rows) if right.is_local else left
    rows = left.join(right, "inner", node.equalities, node.residual).columns(node.columns)
    return rows if keys.advisory else keys.restricted(rows)


def _join(node: LeftLinearJoin, left: Relation, right: Relation | None) -> Relation | None:
    """Left rows (any updates) against right rows (a multiset)."""
    if right is None:
        if node.kind == "semi":
            return None
        if node.kind == "anti":
            return left
        return _beside_nulls(node, left)
    joined = left.join(right, node.kind, node.equalities, node.residual)
    return replace(joined.columns(node.columns), positive=left.positive)


def _beside_nulls(node: LeftLinearJoin, left: Relation) -> Relation:
    nulls = [(id, Expr(f"CAST(NULL AS {dtype})")) for id, dtype in node.right_types]
    return left.columns(node.left.columns).extend(nulls).columns(node.columns)
