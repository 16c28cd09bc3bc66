"""Grouped aggregation by accumulators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.render.extremes import any_of, seen, with_extremes
from dbt_incremental_dd.render.keys import Keys, keys_of, null_safe
from dbt_incremental_dd.render.outputs import FIRST, NEW, OLD, SECOND, compared, in_out, multiplicity, sum_types
from dbt_incremental_dd.render.reduce_at_once import reduce_at_once
from dbt_incremental_dd.render.reduce_local import beside_former, difference, finished, summed, with_values
from dbt_incremental_dd.render.rows import Rows, positive
from dbt_incremental_dd.trace import limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """Adds the input's delta, summed by group, to the accumulators; gives touched groups' outputs, new minus old."""
    assert isinstance(node, Accumulate)
    source = r.delta_at_hand(node.input, limits.TASK_ROWS)
    if source is None:
        return _first_global_row(node, r)
    sums = r.context.inner.of(node.sums)
    change = summed(node, source)
    at_once = reduce_at_once(node, r, source) if change is None else None
    if at_once is not None:
        change, answer = at_once
        sums.append(change, r.context.at)
        return answer
    change = _stored_change(node, r, source) if change is None else sums.append(change, r.context.at)
    if change.estimate == 0:
        return _first_global_row(node, r)
    if r.context.from_nothing and not node.extremes:
        return _finished(node, change)
    keys = keys_of(change, node.keys)
    before = None if r.context.from_nothing else sums.contents(new=False, keys=keys if node.keys else None)
    merged = beside_former(node, change, before) or replace(change, source=_merge(node, change, before))
    if node.extremes:
        merged = with_extremes(node, r, merged, keys, inserts_only=source.positive)
    local = difference(node, merged, r.context.from_nothing)
    return local or Rows(_difference(node, r, merged.frame), 2 * change.estimate, consolidated=True)


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The outputs of the stored accumulators."""
    assert isinstance(node, Accumulate)
    if new:
        r.delta(node)
    below = keys.only(node.keys) if keys and set(keys.columns) & set(node.keys) else None
    stored = r.context.inner.of(node.sums).contents(new=new, keys=below)
    if stored is None or (node.global_row and stored.local is not None and stored.local.num_rows == 0):
        return _empty_global_row(node, r)
    rows = _finished(node, _whole(node, r, stored, new, below))
    rows = rows if stored.local is None else r.context.localized(rows, limits.FOUND_ROWS)
    if keys is None or keys.advisory or (below and len(below.columns) == len(keys.columns)):
        return rows
    return keys.restricted(rows)


def _whole(node: Accumulate, r: OperatorRun, sums: Rows, new: bool, keys: Keys | None) -> Rows:
    """Stored accumulators with the extremes of their groups."""
    rows = sums
    if node.global_row and sums.local is None:
        rows = replace(sums, source=_one_row(node, sums.frame))
    if node.values is None:
        return rows
    values = r.context.inner.of(node.values).contents(new=new, keys=keys)
    local = with_values(node, rows, values)
    return local or replace(rows, source=_join_values(node, rows.frame, positive(values).frame if values else None))


def _change(node: Accumulate, source: Rows) -> Rows:
    """The input's delta summed by group: keys, ``dd_diff``, accumulators, and the extremes in and out."""
    sums = [F.expr(f"coalesce(sum({DIFF}), 0L)").alias(DIFF)]
    sums += [F.expr(f"CAST(coalesce({a.delta}, 0) AS {a.dtype})").alias(a.name) for a in node.accumulators]
    extremes = [column for e in node.extremes for column in seen(e)]
    grouped = source.frame.groupBy(*node.keys).agg(*sums, *extremes)
    touched = [F.col(name) != 0 for name in node.sums.diffs]
    touched += [F.col(in_out(kind, e)).isNotNull() for e in node.extremes for kind in ("in", "out")]
    if not source.positive:
        grouped = grouped.where(any_of(touched))
    return Rows(grouped, source.estimate if node.keys else 1, consolidated=True)


def _stored_change(node: Accumulate, r: OperatorRun, source: Rows) -> Rows:
    """The input's delta summed by group, and its sums stored; as they are read from there, where nothing else is
    needed of them."""
    change = _change(node, source)
    sums = r.context.inner.of(node.sums)
    if node.extremes:
        change = r.context.materialize(change)
        sums.append(change, r.context.at)
        return change
    # A delta that is not small may well be one of a few groups.
    limit = limits.LOCAL_ROWS if r.context.from_nothing else limits.FOUND_ROWS
    return sums.append(r.context.localized(change, limit), r.context.at)


def _merge(node: Accumulate, change: Rows, before: Rows | None) -> DataFrame:
    """The change with, for each sum, its old value beside it (0 where the group is new).

    Grouped once more instead of joined: of few rows nothing is then sorted or sent.
    """
    types = sum_types(node)
    if before is None:
        return change.frame.select("*", *(F.lit(0).cast(dtype).alias(OLD + name) for name, dtype in types.items()))
    old = before.frame.select(*node.keys, *(F.col(name).alias(OLD + name) for name in types))
    both = change.frame.unionByName(old, allowMissingColumns=True)
    if change.estimate + before.estimate <= limits.TASK_ROWS:
        both = both.coalesce(1)
    own = (name for name in change.frame.columns if name not in node.keys)
    new = (F.expr(f"any_value(`{name}`, true)").alias(name) for name in own)
    former = (
        F.expr(f"CAST(coalesce(any_value(`{OLD + name}`, true), 0) AS {kind})").alias(OLD + name)
        for name, kind in types.items()
    )
    return both.groupBy(*node.keys).agg(*new, *former).where(F.col(DIFF).isNotNull())


def _difference(node: Accumulate, r: OperatorRun, merged: DataFrame) -> DataFrame:
    """For each group the new output row, and the old one negated, unless they are equal."""
    rows = r.context.spark.sql(compared(node, r.context.view(merged), r.context.from_nothing))
    ids = [id for id, _ in node.outputs]
    new = ", ".join([*(f"`{NEW}{id}` AS `{id}`" for id in ids), f"{FIRST} AS {DIFF}"])
    old = ", ".join([*(f"`{OLD}{id}` AS `{id}`" for id in ids), f"{SECOND} AS {DIFF}"])
    exploded = rows.selectExpr(*node.keys, f"explode(array(struct({new}), struct({old}))) AS dd_row")
    exploded = exploded.where(f"dd_row.{DIFF} <> 0")
    return exploded.selectExpr(*node.keys, *(f"dd_row.`{id}` AS `{id}`" for id in ids), f"dd_row.{DIFF} AS {DIFF}")


def _finished(node: Accumulate, sums: Rows) -> Rows:
    """The outputs of whole accumulators."""
    local = finished(node, sums)
    if local is not None:
        return local
    outputs = [f"{sql} AS {id}" for id, sql in node.outputs]
    frame = sums.frame.selectExpr(*node.keys, *outputs, f"{multiplicity(node, DIFF)} AS {DIFF}").where(f"{DIFF} > 0")
    return Rows(frame, sums.estimate, positive=True, consolidated=True)


def _first_global_row(node: Accumulate, r: OperatorRun) -> Rows | None:
    """Without GROUP BY there is a row from the first time on, also over nothing."""
    return _empty_global_row(node, r) if r.context.from_nothing else None


def _empty_global_row(node: Accumulate, r: OperatorRun) -> Rows | None:
    if not node.global_row:
        return None
    zeros = ", ".join(f"0L AS {name}" for name in node.sums.diffs)
    nulls = "".join(f", CAST(NULL AS {dtype}) AS {id}" for id, dtype in node.extreme_types)
    frame = r.context.spark.sql(f"SELECT {zeros}{nulls}")
    return _finished(node, Rows(frame, 1))


def _one_row(node: Accumulate, frame: DataFrame) -> DataFrame:
    """The accumulators of everything, zeros where nothing is left."""
    sums = (F.expr(f"CAST(coalesce(sum({n}), 0) AS {t})").alias(n) for n, t in sum_types(node).items())
    return frame.groupBy().agg(*sums)


def _join_values(node: Accumulate, frame: DataFrame, values: DataFrame | None) -> DataFrame:
    """Accumulators with their groups' extremes beside them."""
    if values is None:
        nulls = (F.expr(f"CAST(NULL AS {dtype})").alias(id) for id, dtype in node.extreme_types)
        return frame.select("*", *nulls)
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    values = values.select(*(F.col(id).alias(name) for id, name in renamed.items()), *(e.id for e in node.extremes))
    return frame.join(values, null_safe(renamed), "left").drop(*renamed.values())
