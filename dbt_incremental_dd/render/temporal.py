"""What time alone changes of an operator over single rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.temporal import crossing, is_temporal, moments
from dbt_incremental_dd.logical.nodes import Filter, Node
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace import limits

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def source_of_change(node: Node, r: OperatorRun) -> Rows | None:
    """The former rows of the operator's input that may come out otherwise now; None where none does."""
    if r.context.from_nothing or not is_temporal(node):
        return None
    same, null = _compared(node, r)
    if same:
        return None
    rows = r.contents(node.inputs[0], new=False)
    if rows is None or null or not isinstance(node, Filter):
        return rows
    near = crossing(node.predicate, r.context.t0, r.context.t1)
    return rows if near is None else replace(rows, source=rows.frame.where(near.sql))


def crossed(node: Filter, r: OperatorRun, rows: Rows) -> Rows:
    """Of the former rows of a filter's input, those that enter now, and those that leave, negated."""
    was = F.coalesce(F.expr(node.predicate.at(r.context.t0).sql), F.lit(False))
    now = F.coalesce(F.expr(node.predicate.at(r.context.t1).sql), F.lit(False))
    frame = rows.frame.where(was != now).withColumn(DIFF, F.when(now, F.col(DIFF)).otherwise(-F.col(DIFF)))
    return Rows(frame, min(rows.estimate, limits.LOCAL_ROWS))


def _compared(node: Node, r: OperatorRun) -> tuple[bool, bool]:
    """Whether all moments that the operator reads are what they were, and whether one of them is NULL. Of those whose
    type cannot be compared (maps), neither is known: they may be others, and NULL."""
    from pyspark.errors import AnalysisException

    pairs = [[moment.at(t).sql for t in (r.context.t0, r.context.t1)] for moment in moments(node)]
    same = " AND ".join(f"(({a}) <=> ({b}))" for a, b in pairs)
    null = " OR ".join(f"({a}) IS NULL OR ({b}) IS NULL" for a, b in pairs)
    try:
        row = r.context.spark.sql(f"SELECT {same} AS same, {null} AS null").head()
    except AnalysisException:
        return False, True
    assert row is not None
    return bool(row["same"]), bool(row["null"])
