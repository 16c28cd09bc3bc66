"""Inner joins by delta queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.join import DeltaJoin, Equality, Path, PathStep
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.relation.keys import Keys, keys_of
from dbt_incremental_dd.relation.relation import Relation, plus

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: DeltaJoin, run: OperatorRun) -> Relation | None:
    """The sum of the paths that start from inputs with a delta: new contents before it, old ones after it.

    From nothing there are no old contents, and any one path makes everything.
    """
    parts = []
    paths = run.paths(node)
    for path in (min(paths, key=lambda path: path.cost),) if run.context.from_nothing else paths:
        start = run.delta_at_hand(node.operands[path.start])
        if start is not None:
            parts.append(_follow(node, path, start, run, new=None))
    return plus(parts)


def contents(node: DeltaJoin, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The path from the input that holds most of the keys' columns; the others are probed with what it finds."""
    here = [len(set(keys.columns) & set(o.columns)) if keys else 0 for o in node.operands]
    first = max(range(len(here)), key=here.__getitem__)
    below = keys.only(node.operands[first].columns) if keys and here[first] else None
    start = run.contents(node.operands[first], new=new, keys=below)
    if start is None:
        return None
    if below is not None and below.estimate <= run.context.thresholds.broadcast_rows:
        start = replace(start, estimate=min(start.estimate, 100 * below.estimate))
    rows = _follow(node, run.paths(node)[first], start, run, new=new)
    if rows is None or keys is None or keys.advisory or here[first] == len(keys.columns):
        return rows
    return keys.restricted(rows)


def _follow(node: DeltaJoin, path: Path, start: Relation, run: OperatorRun, *, new: bool | None) -> Relation | None:
    """The path's result. ``new`` None: each input at its own side of the delta query."""
    rows: Relation | None = start
    for predicate in path.first:
        rows = rows.filter(predicate) if rows else None
    for step in path.steps:
        if rows is None:
            return None
        at_new = step.operand < path.start if new is None else new
        at_new = at_new or run.context.from_nothing
        rows = _probe(node.operands[step.operand], step, rows, run, new=at_new)
    return None if rows is None else rows.columns(node.columns)


def _probe(operand: Node, step: PathStep, rows: Relation, run: OperatorRun, *, new: bool) -> Relation | None:
    other = run.contents(operand, new=new, keys=probe_keys(rows, step.equalities))
    if other is None:
        return None
    from_nothing = run.context.from_nothing
    other = other.localized(run.context.thresholds.found_rows) if rows.is_local and not from_nothing else other
    joined = rows.join(other, "inner", step.equalities, step.residual)
    is_delta = rows.estimate <= run.context.thresholds.broadcast_rows and not from_nothing and not joined.is_local
    return replace(joined, estimate=rows.estimate) if is_delta else joined


def probe_keys(rows: Relation, equalities: Sequence[Equality]) -> Keys | None:
    """The restriction of the other side to the keys that ``rows`` have; None where there is none to push down."""
    pairs: dict[Id, Expr] = {}
    for equality in equalities:
        column = equality.right.as_column
        if column is not None and column not in pairs:
            pairs[column] = equality.left
    if not pairs or rows.estimate > rows.workspace.thresholds.broadcast_rows:
        return None
    rows = that_may_match(rows, equalities)
    plain = {right: left.as_column for right, left in pairs.items() if left.as_column}
    if rows.is_local and len(set(plain.values())) == len(pairs):
        left_keys = keys_of(rows, tuple(plain.values()))
        return replace(left_keys.renamed({left: right for right, left in plain.items()}), advisory=True)
    found = keys_of(rows, tuple(dict.fromkeys(plain.values()))).values if rows.is_local else {}
    values = {right: found[left] for right, left in plain.items() if left in found}

    def make() -> Relation:
        return rows.map(list(pairs.items())).distinct(tuple(pairs))

    return Keys(tuple(pairs), make, rows.estimate, values, advisory=True)


def that_may_match(rows: Relation, equalities: Sequence[Equality]) -> Relation:
    """Known rows without those that are NULL in a key: they are equal to nothing, and NULL has no bounds."""
    columns = [e.left.as_column for e in equalities if e.left.as_column and not e.null_safe]
    with_null = [name for name in columns if name and rows.has_null(name)]
    return rows.filter(Expr(" AND ".join(f"{name} IS NOT NULL" for name in with_null))) if with_null else rows
