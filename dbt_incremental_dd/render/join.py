"""Inner joins by delta queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce as fold
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.join import DeltaJoin, Equality, Path, Step
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Id, Node
from dbt_incremental_dd.render.keys import Keys, keys_of
from dbt_incremental_dd.render.local_join import join_locally
from dbt_incremental_dd.render.rows import Rows, filtered, plus
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from dbt_incremental_dd.render.operator import OperatorRun

_OTHER = "dd_diff_other"


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The sum of the paths that start from inputs with a delta: new contents before it, old ones after it.

    From nothing there are no old contents, and any one path makes everything.
    """
    assert isinstance(node, DeltaJoin)
    parts = []
    paths = r.paths(node)
    for path in (min(paths, key=lambda path: path.cost),) if r.context.from_nothing else paths:
        start = r.delta_at_hand(node.operands[path.start])
        if start is not None:
            parts.append(_follow(node, path, start, r, None))
    return plus(parts)


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The path from the input that holds most of the keys' columns; the others are probed with what it finds."""
    assert isinstance(node, DeltaJoin)
    here = [len(set(keys.columns) & set(o.columns)) if keys else 0 for o in node.operands]
    first = max(range(len(here)), key=here.__getitem__)
    below = keys.only(node.operands[first].columns) if keys and here[first] else None
    start = r.contents(node.operands[first], new=new, keys=below)
    if start is None:
        return None
    if below is not None and below.is_few:
        start = replace(start, estimate=min(start.estimate, 100 * below.estimate))
    rows = _follow(node, r.paths(node)[first], start, r, new)
    if rows is None or keys is None or keys.advisory or here[first] == len(keys.columns):
        return rows
    return keys.restricted(rows)


def _follow(node: DeltaJoin, path: Path, start: Rows, r: OperatorRun, new: bool | None) -> Rows | None:
    """The path's result. ``new`` None: each input at its own side of the delta query."""
    rows: Rows | None = fold(filtered, path.first, start)
    for step in path.steps:
        if rows is None:
            return None
        at_new = step.operand < path.start if new is None else new
        at_new = at_new or r.context.from_nothing
        rows = _probe(node.operands[step.operand], step, rows, r, at_new)
    return None if rows is None else rows.renamed([(id, id) for id in node.columns])


def _probe(operand: Node, step: Step, rows: Rows, r: OperatorRun, new: bool) -> Rows | None:
    keys = probe_keys(rows, step.equalities)
    other = r.contents(operand, new=new, keys=keys)
    if other is None:
        return None
    joined = None if r.context.from_nothing else join_locally(r.context, rows, other, step.equalities)
    if joined is not None:
        return fold(filtered, step.residual, joined)
    frame = join_on(rows, other, step.equalities, step.residual, "inner")
    frame = frame.withColumn(DIFF, F.col(DIFF) * F.col(_OTHER)).drop(_OTHER)
    is_delta = rows.is_small and not r.context.from_nothing
    estimate = rows.estimate if is_delta else max(rows.estimate, other.estimate)
    return Rows(frame, estimate, positive=rows.positive and other.positive)


def probe_keys(rows: Rows, equalities: Sequence[Equality]) -> Keys | None:
    """The restriction of the other side to the keys that ``rows`` have; None where there is none to push down."""
    rows = _that_may_match(rows, equalities)
    pairs: dict[Id, Expr] = {}
    for equality in equalities:
        column = equality.right.as_column
        if column is not None and column not in pairs:
            pairs[column] = equality.left
    if not pairs or rows.estimate > limits.BROADCAST_ROWS:
        return None
    plain = {right: left.as_column for right, left in pairs.items() if left.as_column}
    if rows.local is not None and len(set(plain.values())) == len(pairs):
        left_keys = keys_of(rows, tuple(plain.values()))
        return replace(left_keys.renamed({left: right for right, left in plain.items()}), advisory=True)
    found = keys_of(rows, tuple(dict.fromkeys(plain.values()))).values if rows.local is not None else {}
    values = {right: found[left] for right, left in plain.items() if left in found}

    def make() -> DataFrame:
        return rows.frame.select(*(F.expr(left.sql).alias(right) for right, left in pairs.items())).distinct()

    return Keys(tuple(pairs), make, rows.estimate, values, advisory=True)


def _that_may_match(rows: Rows, equalities: Sequence[Equality]) -> Rows:
    """Rows on the driver without those that are NULL in a key: they are equal to nothing, and NULL has no bounds."""
    local = rows.source
    if not isinstance(local, Local):
        return rows
    columns = {e.left.as_column for e in equalities if e.left.as_column and not e.null_safe}
    absent = [pc.is_null(local.table[id]) for id in columns if local.table[id].null_count]
    if not absent:
        return rows
    table = local.table.filter(pc.invert(fold(pc.or_, absent)))
    return replace(rows, source=local.with_table(table), estimate=table.num_rows)


def join_on(rows: Rows, other: Rows, equalities: Sequence[Equality], residual: Sequence[Expr], how: str) -> DataFrame:
    """Both sides joined; the other's diff is called ``dd_diff_other``. The smaller side is broadcast if it may be."""
    left, right = rows.frame, other.frame.withColumnRenamed(DIFF, _OTHER)
    if rows.is_small and how == "inner" and rows.estimate <= other.estimate:
        left = F.broadcast(left)
    elif other.is_small:
        right = F.broadcast(right)
    return left.join(right, condition(equalities, residual), how)


def condition(equalities: Sequence[Equality], residual: Sequence[Expr]) -> Column:
    """The join condition as one expression."""
    parts = [f"({e.left.sql}) {'<=>' if e.null_safe else '='} ({e.right.sql})" for e in equalities]
    parts += [f"({predicate.sql})" for predicate in residual]
    return F.expr(" AND ".join(parts)) if parts else F.lit(True)
