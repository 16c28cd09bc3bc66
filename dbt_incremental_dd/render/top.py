"""The first rows of everything, from the ones that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.local_top import BEFORE, answer_locally, updated_locally
from dbt_incremental_dd.render.ranked import ordering, top
from dbt_incremental_dd.render.rows import Rows, consolidated, expanded, negated, plus, positive
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_WAS = "dd_was_kept"


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The kept rows' new answer minus their old one."""
    assert isinstance(node, KeptTop)
    change = r.delta(node.input) if r.context.from_nothing else r.small_delta(node.input)
    if change is None:
        return None
    old = None if r.context.from_nothing else r.context.inner.of(node.kept).contents(new=False)
    was_complete = not r.context.from_nothing and _is_complete(node, r)
    found = None if r.context.from_nothing else _updated(node, r, change, old, was_complete)
    if found is None:
        found = _first(node, r, change if r.context.from_nothing else r.contents(node.input, new=True))
    new, is_complete = found
    moved = plus([new, negated(old)])
    if moved is not None:
        r.context.inner.of(node.kept).append(r.context.brought(consolidated(moved)), r.context.at)
    if is_complete != was_complete:
        r.context.inner.of(node.complete).append(_one(r, is_complete - was_complete), r.context.at)
    answer = plus([_answer(node, new), negated(_answer(node, old))])
    return None if answer is None else consolidated(answer)


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The answer of the kept rows."""
    assert isinstance(node, KeptTop)
    if new:
        r.delta(node)
    rows = _answer(node, r.context.inner.of(node.kept).contents(new=new))
    return rows if rows is None or keys is None else keys.restricted(rows)


def _answer(node: KeptTop, kept: Rows | None) -> Rows | None:
    if kept is None:
        return None
    local = answer_locally(node, kept)
    if local is not None:
        return local
    frame = top(node, expanded(kept)).withColumn(DIFF, F.lit(1).cast("bigint"))
    return Rows(frame, min(kept.estimate, node.limit), positive=True)


def _first(node: KeptTop, r: OperatorRun, source: Rows | None) -> tuple[Rows | None, bool]:
    """As many rows as are to be kept, of all; and whether these are all."""
    if source is None:
        return None, True
    most = node.needed + limits.KEPT_ROWS
    frame = positive(source).frame.orderBy(*ordering(node)).limit(most)
    kept = r.context.brought(Rows(frame, most, positive=True))
    return kept, kept.estimate < most


def _updated(
    node: KeptTop, r: OperatorRun, change: Rows, old: Rows | None, complete: bool
) -> tuple[Rows | None, bool] | None:
    """The kept rows with the change, and whether they are all; None where that takes the whole input.

    Of the change only what comes before the last kept row is known to follow the kept ones, unless all are kept.
    """
    if change.local is None:
        return None
    local = updated_locally(node, change, old, complete)
    if local is not None:
        return _within(node, Rows(local, local.table.num_rows), complete)
    frame = change.frame.withColumn(_WAS, F.lit(0))
    if old is not None:
        frame = frame.unionByName(old.frame.withColumn(_WAS, F.lit(1))).coalesce(1)
    frame = frame.groupBy(*node.columns).agg(F.sum(DIFF).alias(DIFF), F.max(_WAS).alias(_WAS))
    in_order = W.orderBy(*ordering(node))
    frame = frame.withColumn("dd_rank", F.row_number().over(in_order))
    last = F.max(F.when(F.col(_WAS) == 1, F.col("dd_rank"))).over(W.partitionBy())
    frame = frame.withColumn("dd_last", last).where(F.lit(complete) | (F.col("dd_rank") <= F.col("dd_last")))
    running = F.sum(DIFF).over(in_order.rowsBetween(W.unboundedPreceding, W.currentRow))
    frame = frame.where(F.col(DIFF) > 0).withColumn(BEFORE, running - F.col(DIFF))
    few = change.estimate + (old.estimate if old else 0)
    found = r.context.brought(Rows(frame.select(*node.columns, DIFF, BEFORE), few))
    return _within(node, found, complete)


def _within(node: KeptTop, found: Rows, complete: bool) -> tuple[Rows | None, bool] | None:
    table = found.local
    assert table is not None
    if not complete and (pc.sum(table[DIFF]).as_py() or 0) < node.needed:
        return None
    kept = table.filter(pc.less(table[BEFORE], node.needed + limits.KEPT_ROWS)).drop_columns([BEFORE])
    schema = found.schema.select((*node.columns, DIFF))
    assert isinstance(found.source, Local)
    rows = Rows(Local(found.source.spark, kept, schema), kept.num_rows, positive=True, consolidated=True)
    return rows, complete and kept.num_rows == table.num_rows


def _is_complete(node: KeptTop, r: OperatorRun) -> bool:
    rows = r.context.inner.of(node.complete).contents(new=False)
    return rows is not None and bool(r.context.brought(rows).estimate)


def _one(r: OperatorRun, diff: int) -> Rows:
    table = pa.table({DIFF: pa.array([diff], pa.int64())})
    return Rows(Local(r.context.spark, table, Schema((DIFF_COLUMN,))), 1)
