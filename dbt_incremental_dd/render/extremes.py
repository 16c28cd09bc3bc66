"""Minima and maxima of groups: compared with what is stored, recomputed only where the stored one went out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce as fold
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.logical.nodes import Id
from dbt_incremental_dd.render.keys import Keys, keys_of, null_safe
from dbt_incremental_dd.render.outputs import NEW, OLD, in_out
from dbt_incremental_dd.render.reduce_local import fresh
from dbt_incremental_dd.render.rows import Rows, positive
from dbt_incremental_dd.trace.arrow import is_ordered, is_plain, same_values
from dbt_incremental_dd.trace.local import Local, lookup_local

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.operator import OperatorRun


def seen(e: Extreme) -> list[SparkColumn]:
    """The extreme of what comes in, and of what goes out."""
    f = "max" if e.maximum else "min"
    value = e.value.sql
    return [
        F.expr(f"{f}(CASE WHEN {DIFF} > 0 THEN {value} END)").alias(in_out("in", e)),
        F.expr(f"{f}(CASE WHEN {DIFF} < 0 THEN {value} END)").alias(in_out("out", e)),
    ]


def any_of(conditions: Sequence[SparkColumn]) -> SparkColumn:
    """Whether one of them holds."""
    return fold(lambda a, b: a | b, conditions)


def with_extremes(node: Accumulate, r: OperatorRun, merged: Rows, keys: Keys, inserts_only: bool) -> Rows:
    """Old and new extremes beside the sums (``dd_old_<id>``, ``dd_new_<id>``), and their change stored.

    A group whose extreme may have gone out is recomputed from the input; any other is compared.
    """
    assert node.values is not None
    trace = r.context.inner.of(node.values)
    stored = None if r.context.from_nothing else trace.contents(new=False, keys=keys if node.keys else None)
    on_driver = merged.local is not None and (stored is None or stored.local is not None)
    if on_driver and _is_comparable(node, merged):
        rows, change = _compared_locally(node, r, merged, stored, inserts_only)
        trace.append(change, r.context.at)
        return rows
    frame = _old_extremes(node, merged.frame, positive(stored).frame if stored else None)
    lost = any_of([_lost(e) for e in node.extremes])
    compared = frame.withColumns({NEW + e.id: _compared(e) for e in node.extremes}).withColumn("dd_lost", lost)
    rows = r.context.materialize(Rows(compared, merged.estimate))
    if not inserts_only:
        rows = r.context.materialize(Rows(_recompute_lost(node, r, rows), merged.estimate))
    trace.append(r.context.materialize(_values_change(node, rows)), r.context.at)
    return rows


def _is_comparable(node: Accumulate, merged: Rows) -> bool:
    """Whether Arrow orders the extremes' values as Spark does."""
    names = tuple(in_out(kind, e) for e in node.extremes for kind in ("in", "out"))
    schema = merged.schema
    return is_plain(schema.select(node.keys)) and is_ordered(schema.select(names))


def _compared_locally(
    node: Accumulate, r: OperatorRun, merged: Rows, stored: Rows | None, inserts_only: bool
) -> tuple[Rows, Rows]:
    """On the driver: the merged rows with old and new extremes, and the change of the stored ones."""
    local = merged.source
    assert isinstance(local, Local)
    table = local.table
    types = {e.id: local.schema.select((in_out("in", e),)).columns[0].type for e in node.extremes}
    old = {id: pa.nulls(table.num_rows, table.schema.field(f"dd_in_{id}").type) for id in types}
    if stored is not None and stored.local is not None:
        found = lookup_local(table, stored.local, node.keys, tuple(types))
        old = {id: found[id] for id in types}
    new = {e.id: _better(e, old[e.id], table[in_out("in", e)]) for e in node.extremes}
    lost = fold(pc.or_, (_lost_locally(e, table, old[e.id]) for e in node.extremes))
    if not inserts_only and pc.any(lost).as_py():
        fresh = _fresh_locally(node, r, local.with_table(table.filter(lost)), table)
        new = {id: pc.if_else(lost, fresh[f"dd_fresh_{id}"], values) for id, values in new.items()}
    beside = {**{OLD + id: values for id, values in old.items()}, **{NEW + id: v for id, v in new.items()}}
    columns = tuple(Column(name, types[name.removeprefix(OLD).removeprefix(NEW)]) for name in beside)
    wide = pa.table({**{name: table[name] for name in table.column_names}, **beside})
    rows = replace(merged, source=Local(local.spark, wide, Schema((*local.schema.columns, *columns))))
    return rows, _values_change_locally(node, rows, types)


def _lost_locally(e: Extreme, table: pa.Table, old: pa.ChunkedArray) -> pa.ChunkedArray:
    """``_lost`` on the driver."""
    out, came = table[in_out("out", e)], table[in_out("in", e)]
    at_least = pc.greater_equal if e.maximum else pc.less_equal
    beyond = pc.greater if e.maximum else pc.less
    hit = pc.or_(pc.fill_null(at_least(out, old), False), pc.and_(pc.is_valid(out), pc.is_null(old)))
    return pc.and_(hit, pc.invert(pc.fill_null(beyond(came, out), False)))


def _better(e: Extreme, one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """The more extreme of two values; the other one where one is NULL."""
    wins = (pc.greater_equal if e.maximum else pc.less_equal)(one, other)
    return pc.if_else(pc.coalesce(wins, pc.is_valid(one)), one, other)


def _fresh_locally(node: Accumulate, r: OperatorRun, lost: Local, table: pa.Table) -> pa.Table:
    """For each row of ``table``, its group's extremes in the input's contents, if it is one of the lost."""
    names = [f"dd_fresh_{e.id}" for e in node.extremes]
    keys = keys_of(Rows(lost, lost.table.num_rows), node.keys)
    source = r.contents(node.input, new=True, keys=keys if node.keys else None)
    types = [table.schema.field(in_out("in", e)).type for e in node.extremes]
    if source is None:
        return pa.table({name: pa.nulls(table.num_rows, dtype) for name, dtype in zip(names, types, strict=True)})
    best = fresh(node, source)
    if best is None:
        best = _fresh_extremes(node, source, {id: id for id in node.keys}).toArrow()
    wanted = pa.schema([*(table.schema.field(id) for id in node.keys), *zip(names, types, strict=True)])
    return lookup_local(table, best.cast(wanted), node.keys, names)


def _values_change_locally(node: Accumulate, rows: Rows, types: Mapping[Id, Type]) -> Rows:
    """``_values_change`` on the driver."""
    local = rows.source
    assert isinstance(local, Local)
    table = local.table
    was = pc.greater(table[OLD + DIFF], 0)
    is_ = pc.greater(pc.add(table[OLD + DIFF], table[DIFF]), 0)
    same = pc.equal(was, is_)
    for id in types:
        same = pc.and_(same, same_values(table[OLD + id], table[NEW + id]))
    changed = pc.invert(same)
    parts = []
    for prefix, there, diff in ((OLD, was, -1), (NEW, is_, 1)):
        kept = table.filter(pc.and_(changed, there))
        values = {id: kept[prefix + id] for id in types}
        diffs = pa.array([diff] * kept.num_rows, pa.int64())
        parts.append(pa.table({**{id: kept[id] for id in node.keys}, **values, DIFF: diffs}))
    schema = Schema((*local.schema.select(node.keys), *(Column(id, dtype) for id, dtype in types.items()), DIFF_COLUMN))
    both = pa.concat_tables(parts)
    return Rows(Local(local.spark, both, schema), both.num_rows, consolidated=True)


def _old_extremes(node: Accumulate, frame: DataFrame, stored: DataFrame | None) -> DataFrame:
    if stored is None:
        nulls = (F.expr(f"CAST(NULL AS {dtype})").alias(OLD + id) for id, dtype in node.extreme_types)
        return frame.select("*", *nulls)
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    old = stored.select(
        *(F.col(id).alias(name) for id, name in renamed.items()),
        *(F.col(e.id).alias(OLD + e.id) for e in node.extremes),
    )
    return frame.join(old, null_safe(renamed), "left").drop(*renamed.values())


def _lost(e: Extreme) -> SparkColumn:
    """Whether what went out may have been the extreme, and what came in is not beyond it.

    Equal is not enough: a delta may hold a row and its retraction.
    """
    out, came, old = F.col(in_out("out", e)), F.col(in_out("in", e)), F.col(OLD + e.id)
    hit = F.coalesce((out >= old) if e.maximum else (out <= old), F.lit(False)) | (out.isNotNull() & old.isNull())
    return hit & ~F.coalesce((came > out) if e.maximum else (came < out), F.lit(False))


def _compared(e: Extreme) -> SparkColumn:
    f = F.greatest if e.maximum else F.least
    return f(F.col(OLD + e.id), F.col(in_out("in", e)))


def _recompute_lost(node: Accumulate, r: OperatorRun, rows: Rows) -> DataFrame:
    if isinstance(rows.source, Local):
        table = rows.source.table.filter(rows.source.table["dd_lost"])
        if not table.num_rows:
            return rows.frame
        keys = keys_of(Rows(rows.source.with_table(table), table.num_rows), node.keys)
    else:
        keys = keys_of(replace(rows, source=rows.frame.where("dd_lost")), node.keys)
    source = r.contents(node.input, new=True, keys=keys if node.keys else None)
    if source is None:
        chosen = {NEW + e.id: F.when(~F.col("dd_lost"), F.col(NEW + e.id)) for e in node.extremes}
        return rows.frame.withColumns(chosen)
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    joined = rows.frame.join(_fresh_extremes(node, source, renamed), null_safe(renamed), "left")
    chosen = {
        NEW + e.id: F.when(F.col("dd_lost"), F.col(f"dd_fresh_{e.id}")).otherwise(F.col(NEW + e.id))
        for e in node.extremes
    }
    fresh = (f"dd_fresh_{e.id}" for e in node.extremes)
    return joined.withColumns(chosen).drop(*renamed.values(), *fresh)


def _fresh_extremes(node: Accumulate, source: Rows, renamed: Mapping[Id, str]) -> DataFrame:
    """The extremes of the input's contents, by group."""
    best = [F.expr(f"{'max' if e.maximum else 'min'}({e.value.sql})").alias(f"dd_fresh_{e.id}") for e in node.extremes]
    grouped = positive(source).frame.groupBy(*node.keys).agg(*best)
    keys = (F.col(id).alias(name) for id, name in renamed.items())
    return grouped.select(*keys, *(f"dd_fresh_{e.id}" for e in node.extremes))


def _values_change(node: Accumulate, rows: Rows) -> Rows:
    """The stored extremes' delta: a row for each group that has rows."""
    ids: tuple[Id, ...] = tuple(e.id for e in node.extremes)
    old = ", ".join(f"`{OLD}{id}` AS {id}" for id in ids)
    new = ", ".join(f"`{NEW}{id}` AS {id}" for id in ids)
    was, is_ = f"`{OLD}{DIFF}` > 0", f"`{OLD}{DIFF}` + {DIFF} > 0"
    unchanged = f"(struct({old}) <=> struct({new})) AND ({was}) = ({is_})"
    pair = (
        f"array(struct(struct({old}) AS row, CASE WHEN {was} THEN -1L ELSE 0L END AS {DIFF}), "
        f"struct(struct({new}) AS row, CASE WHEN {is_} THEN 1L ELSE 0L END AS {DIFF}))"
    )
    frame = rows.frame.where(f"NOT ({unchanged})").selectExpr(*node.keys, f"explode({pair}) AS dd_row")
    frame = frame.where(f"dd_row.{DIFF} <> 0")
    frame = frame.selectExpr(*node.keys, *(f"dd_row.row.{id} AS {id}" for id in ids), f"dd_row.{DIFF} AS {DIFF}")
    return Rows(frame, 2 * rows.estimate, consolidated=True)
