"""What time alone changes of an operator over single rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.temporal import crossing, is_temporal, moments
from dbt_incremental_dd.local.coercion import is_comparable
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Filter
from dbt_incremental_dd.relation.relation import Relation

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def source_of_change(node: Node, run: OperatorRun) -> Relation | None:
    """The former rows of the operator's input that may come out otherwise now; None where none does."""
    if run.context.from_nothing or not is_temporal(node):
        return None
    same, null = _compared(node, run)
    if same:
        return None
    rows = run.contents(node.inputs[0], new=False)
    if rows is None or null or not isinstance(node, Filter):
        return rows
    near = crossing(node.predicate, run.context.t0, run.context.t1)
    return rows if near is None else rows.filter(near)


def crossed(node: Filter, run: OperatorRun, rows: Relation) -> Relation:
    """Of the former rows of a filter's input, those that enter now, and those that leave, negated."""
    was, now = (f"coalesce({node.predicate.at(t).sql}, FALSE)" for t in (run.context.t0, run.context.t1))
    enters, leaves = f"{now} AND NOT {was}", f"{was} AND NOT {now}"
    found = rows.with_diff(Expr(f"CASE WHEN {enters} THEN {DIFF} WHEN {leaves} THEN -{DIFF} ELSE 0L END"))
    return replace(found, estimate=min(found.estimate, run.context.thresholds.local_rows), positive=False)


def _compared(node: Node, run: OperatorRun) -> tuple[bool, bool]:
    """Whether all moments that the operator reads are what they were, and whether one of them is NULL. Spark is asked
    only of those that the driver cannot compute."""
    pairs = [[moment.at(t).sql for t in (run.context.t0, run.context.t1)] for moment in moments(node)]
    known = [[run.context.workspace.constants.known(sql) for sql in pair] for pair in pairs]
    values = [value.data for pair in known for value in pair if value is not None and is_comparable(value.type)]
    if len(values) < 2 * len(pairs):
        return _compared_by_spark(pairs, run)
    same = all(a.equals(b) for a, b in zip(values[::2], values[1::2], strict=True))
    return same, not all(value.is_valid for value in values)


def _compared_by_spark(pairs: list[list[str]], run: OperatorRun) -> tuple[bool, bool]:
    """The same. Of moments whose type cannot be compared (maps), neither is known: they may be others, and NULL."""
    from pyspark.errors import AnalysisException

    same = " AND ".join(f"(({a}) <=> ({b}))" for a, b in pairs)
    null = " OR ".join(f"({a}) IS NULL OR ({b}) IS NULL" for a, b in pairs)
    try:
        row = run.context.spark.sql(f"SELECT {same} AS same, {null} AS null").head()
    except AnalysisException:
        return False, True
    assert row is not None
    return bool(row["same"]), bool(row["null"])
