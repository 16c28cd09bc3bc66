"""Left outer, semi and anti joins, linear in their left input."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.render.join import join_on, probe_keys
from dbt_incremental_dd.render.keys import Keys, keys_of
from dbt_incremental_dd.render.local_join import outer_join_locally
from dbt_incremental_dd.render.rows import Rows, consolidated, negated, plus, positive
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_plain

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_OTHER = "dd_diff_other"
_HOW = {"left": "left", "semi": "left_semi", "anti": "left_anti"}


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The left delta against the new right side, and the touched keys' old left rows against new minus old."""
    assert isinstance(node, LeftLinearJoin)
    parts: list[Rows | None] = []
    left = r.delta_at_hand(node.left)
    if left is not None:
        keys = None if r.context.from_nothing else probe_keys(left, node.equalities)
        parts.append(_join(node, left, r.contents(node.right, new=True, keys=keys)))
    if not r.context.from_nothing and r.delta(node.right) is not None:
        parts += _right_changed(node, r)
    return plus(parts)


def _right_changed(node: LeftLinearJoin, r: OperatorRun) -> list[Rows | None]:
    changed = r.small_delta(node.right)
    assert changed is not None
    left_keys, right_keys = _touched(node, changed)
    left = r.contents(node.left, new=False, keys=left_keys)
    if left is None:
        return []
    if left_keys is not None and left_keys.table is not None:
        left = r.context.localized(left, limits.FOUND_ROWS)
    right = r.contents(node.right, new=True, keys=right_keys)
    if left.local is not None and right is not None:
        right = r.context.localized(right, limits.FOUND_ROWS)
    new, old = _join(node, left, right), _join(node, left, _before(node, r, right, changed, right_keys))
    moved = plus([new, negated(old)])
    return [moved if moved is None or moved.local is None else consolidated(moved)]


def _before(node: LeftLinearJoin, r: OperatorRun, right: Rows | None, changed: Rows, keys: Keys | None) -> Rows | None:
    """The old right rows of the touched keys; on the driver the new ones without the change, which has no others."""
    if right is None or right.local is None or keys is None or keys.advisory or not is_plain(right.schema):
        return r.contents(node.right, new=False, keys=keys)
    before = plus([right, negated(changed)])
    return None if before is None else positive(before)


def _touched(node: LeftLinearJoin, changed: Rows) -> tuple[Keys | None, Keys | None]:
    """The changed right rows' keys, in terms of left and of right columns; exact on both sides, or None for both.

    Both sides must be restricted alike, by all equalities that are between plain columns.
    """
    pairs = {e.left.as_column: e.right.as_column for e in node.equalities if e.left.as_column and e.right.as_column}
    if not pairs or changed.estimate > limits.BROADCAST_ROWS or len(set(pairs.values())) < len(pairs):
        return None, None
    right = keys_of(changed, tuple(str(column) for column in pairs.values()))
    return right.renamed({str(right): str(left) for left, right in pairs.items()}), right


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The join of both sides' contents, the left restricted, the right to what the left then needs."""
    assert isinstance(node, LeftLinearJoin)
    below = keys.only(node.left.columns) if keys and set(keys.columns) & set(node.left.columns) else None
    left = r.contents(node.left, new=new, keys=below)
    if left is None:
        return None
    right_keys = None
    if below is not None and below.is_few:
        left = replace(left, estimate=min(left.estimate, 100 * below.estimate))
        right_keys = probe_keys(left, node.equalities)
    rows = _join(node, left, r.contents(node.right, new=new, keys=right_keys))
    if rows is None or keys is None or keys.advisory or (below and len(below.columns) == len(keys.columns)):
        return rows
    return keys.restricted(rows)


def _join(node: LeftLinearJoin, left: Rows, right: Rows | None) -> Rows | None:
    """Left rows (any updates) against right rows (a multiset)."""
    if right is None:
        if node.kind == "semi":
            return None
        if node.kind == "anti":
            return left
        nulls = (F.expr(f"CAST(NULL AS {dtype})").alias(id) for id, dtype in node.right_types)
        return left.mapped(left.frame.select(*node.left.columns, *nulls, DIFF))
    right = positive(right)
    local = outer_join_locally(node.kind, left, right, node.equalities, node.residual)
    if local is not None:
        return local
    joined = join_on(left, right, node.equalities, node.residual, _HOW[node.kind])
    if node.kind == "left":
        joined = joined.withColumn(DIFF, F.col(DIFF) * F.coalesce(F.col(_OTHER), F.lit(1).cast("bigint")))
    estimate = max(left.estimate, right.estimate) if node.kind == "left" else left.estimate
    return Rows(joined.select(*node.columns, DIFF), estimate, positive=left.positive)
