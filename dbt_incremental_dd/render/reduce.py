"""Grouped aggregation by accumulators."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, Column, Schema
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.logical.nodes import Id, Node
from dbt_incremental_dd.render.rows import Keys, Rows, keys_of, local_frame, null_safe, positive
from dbt_incremental_dd.trace.local import consolidate_local, is_plain
from dbt_incremental_dd.trace.read import schema_of, struct

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.renderer import Renderer

_OLD = "dd_old_"
DD_TOUCHED = "dd_touched"


def delta(node: Node, r: Renderer) -> Rows | None:
    """Adds the input's delta, summed by group, to the accumulators; gives touched groups' outputs, new minus old."""
    assert isinstance(node, Accumulate)
    source = r.delta(node.input)
    if source is None:
        return _first_global_row(node, r)
    sums = r.context.inner.of(node.sums)
    change = _change(node, source)
    if node.extremes:
        change = r.context.materialize(change)
        sums.append(change, r.context.t1)
    else:
        change = sums.append(r.context.localized(change), r.context.t1)
    if change.estimate == 0:
        return _first_global_row(node, r)
    if r.context.from_nothing and not node.extremes:
        return _finished(node, change)
    keys = keys_of(change, node.keys)
    before = None if r.context.from_nothing else sums.contents(new=False, keys=keys if node.keys else None)
    merged = _merge_locally(node, r, change, before)
    if merged is None:
        merged = _merge(node, change.frame, before)
    if node.extremes:
        merged = _with_extremes(node, r, Rows(merged, change.estimate), keys, inserts_only=source.positive)
    return Rows(_difference(node, merged, r.context.from_nothing), 2 * change.estimate, consolidated=True)


def contents(node: Node, r: Renderer, new: bool, keys: Keys | None) -> Rows | None:
    """The outputs of the stored accumulators."""
    assert isinstance(node, Accumulate)
    if new:
        r.delta(node)
    below = keys.only(node.keys) if keys and set(keys.columns) & set(node.keys) else None
    stored = r.context.inner.of(node.sums).contents(new=new, keys=below)
    if stored is None:
        return _empty_global_row(node, r)
    frame = stored.frame
    if node.values is not None:
        values = r.context.inner.of(node.values).contents(new=new, keys=below)
        frame = _join_values(node, frame, positive(values).frame if values else None)
    rows = _finished(node, Rows(frame, stored.estimate))
    if keys is None or keys.advisory or (below and len(below.columns) == len(keys.columns)):
        return rows
    return rows.mapped(keys.semi_join(rows.frame))


def _change(node: Accumulate, source: Rows) -> Rows:
    """The input's delta summed by group: keys, ``dd_diff``, accumulators, and the extremes in and out."""
    sums = [F.expr(f"coalesce(sum({DIFF}), 0L)").alias(DIFF)]
    sums += [F.expr(f"CAST(coalesce({a.delta}, 0) AS {a.dtype})").alias(a.name) for a in node.accumulators]
    seen = [column for e in node.extremes for column in _seen(e)]
    grouped = source.frame.groupBy(*node.keys).agg(*sums, *seen)
    touched = [F.col(name) != 0 for name in node.sums.diffs]
    touched += [F.col(_name(kind, e)).isNotNull() for e in node.extremes for kind in ("in", "out")]
    if not source.positive:
        grouped = grouped.where(_any(touched))
    return Rows(grouped, source.estimate if node.keys else 1, consolidated=True)


def _seen(e: Extreme) -> list[SparkColumn]:
    """The extreme of what comes in, and of what goes out."""
    f = "max" if e.maximum else "min"
    value = e.value.sql
    return [
        F.expr(f"{f}(CASE WHEN {DIFF} > 0 THEN {value} END)").alias(_name("in", e)),
        F.expr(f"{f}(CASE WHEN {DIFF} < 0 THEN {value} END)").alias(_name("out", e)),
    ]


def _name(kind: str, e: Extreme) -> str:
    return f"dd_{kind}_{e.id}"


def _any(conditions: Sequence[SparkColumn]) -> SparkColumn:
    return fold(lambda a, b: a | b, conditions)


def _merge_locally(node: Accumulate, r: Renderer, change: Rows, before: Rows | None) -> DataFrame | None:
    """The same as ``_merge`` where both sides are on the driver; None where they are not."""
    if node.extremes or change.local is None or before is None:
        return None
    old = before.local if before.local is not None else before.unfiltered
    schema = schema_of(change.frame.schema)
    if old is None or not is_plain(schema.select(node.keys)):
        return None
    names = node.sums.diffs
    new = change.local.select([*node.keys, *names])
    types = {name: new.schema.field(name).type for name in names}
    renamed = old.select([*node.keys, *names]).rename_columns([*node.keys, *(_OLD + name for name in names)])
    renamed = renamed.cast(_like(new, renamed, types))
    both = pa.concat_tables(
        [new.append_column(DD_TOUCHED, pa.array([1] * new.num_rows, pa.int64())), renamed], promote_options="default"
    )
    sums = [*names, *(_OLD + name for name in names), DD_TOUCHED]
    zeros = {name: pc.fill_null(both[name], pa.scalar(0).cast(both.schema.field(name).type)) for name in sums}
    filled = pa.table({**{id: both[id] for id in node.keys}, **zeros})
    merged = consolidate_local(filled, sums)
    merged = merged.filter(pc.greater(merged[DD_TOUCHED], 0)).drop_columns([DD_TOUCHED])
    beside = tuple(Column(_OLD + column.name, column.type) for column in schema.select(names))
    return local_frame(r.context.spark, merged, struct(Schema((*schema.columns, *beside))))


def _like(new: pa.Table, old: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The old side's columns in the types of the new one."""
    keys = {field.name: field.type for field in new.schema}
    return pa.schema([(name, keys.get(name) or types[name.removeprefix(_OLD)]) for name in old.column_names])


def _merge(node: Accumulate, change: DataFrame, before: Rows | None) -> DataFrame:
    """The change with, for each sum, its old value beside it (0 where the group is new)."""
    types = {DIFF: "BIGINT", **{a.name: a.dtype for a in node.accumulators}}
    if before is None:
        return change.select("*", *(F.lit(0).cast(dtype).alias(_OLD + name) for name, dtype in types.items()))
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    old = before.frame.select(
        *(F.col(id).alias(name) for id, name in renamed.items()),
        *(F.col(name).alias(_OLD + name) for name in types),
    )
    joined = change.join(old, null_safe(renamed), "left").drop(*renamed.values())
    zero = {_OLD + name: F.coalesce(_OLD + name, F.lit(0)).cast(dtype) for name, dtype in types.items()}
    return joined.withColumns(zero)


def _difference(node: Accumulate, merged: DataFrame, from_nothing: bool) -> DataFrame:
    """For each group the new output row, and the old one negated, unless they are equal."""
    old = {name: f"`{_OLD + name}`" for name in node.sums.diffs}
    types = {DIFF: "BIGINT", **{a.name: a.dtype for a in node.accumulators}}
    new = {name: f"CAST(`{_OLD + name}` + `{name}` AS {dtype})" for name, dtype in types.items()}
    old_row = [f"{_bind(sql, old, node, _OLD)} AS {id}" for id, sql in node.outputs]
    new_row = [f"{_bind(sql, new, node, 'dd_new_')} AS {id}" for id, sql in node.outputs]
    was = "0L" if from_nothing else _multiplicity(node, old[DIFF])
    rows = merged.selectExpr(
        *node.keys,
        f"struct({', '.join([*new_row, '0 AS dd_pad'])}) AS dd_new",
        f"struct({', '.join([*old_row, '0 AS dd_pad'])}) AS dd_old",
        f"{_multiplicity(node, new[DIFF])} AS dd_is",
        f"{was} AS dd_was",
    )
    same = "dd_new <=> dd_old"
    first = f"CASE WHEN {same} THEN dd_is - dd_was ELSE dd_is END"
    second = f"CASE WHEN {same} THEN 0L ELSE -dd_was END"
    pair = f"array(struct(dd_new AS row, {first} AS {DIFF}), struct(dd_old AS row, {second} AS {DIFF}))"
    exploded = rows.selectExpr(*node.keys, f"explode({pair}) AS dd_row").where(f"dd_row.{DIFF} <> 0")
    return exploded.selectExpr(
        *node.keys, *(f"dd_row.row.{id} AS {id}" for id, _ in node.outputs), f"dd_row.{DIFF} AS {DIFF}"
    )


def _multiplicity(node: Accumulate, count: str) -> str:
    if node.global_row:
        return "1L"
    if node.threshold:
        return f"greatest({count}, 0L)"
    return f"CASE WHEN {count} > 0 THEN 1L ELSE 0L END"


def _bind(sql: str, sums: dict[str, str], node: Accumulate, extremes: str) -> str:
    """An output's SQL with the sums' names replaced by columns of the merged frame."""
    for e in node.extremes:
        if sql == e.id:
            return f"`{extremes}{e.id}`"
    for name in sorted(sums, key=len, reverse=True):
        sql = _replace_word(sql, name, sums[name])
    return sql


def _replace_word(sql: str, word: str, by: str) -> str:
    return re.sub(rf"(?<![\w`]){re.escape(word)}(?![\w`])", lambda _: by, sql)


def _finished(node: Accumulate, sums: Rows) -> Rows:
    """The outputs of whole accumulators."""
    outputs = [f"{sql} AS {id}" for id, sql in node.outputs]
    frame = sums.frame.selectExpr(*node.keys, *outputs, f"{_multiplicity(node, DIFF)} AS {DIFF}").where(f"{DIFF} > 0")
    return Rows(frame, sums.estimate, positive=True, consolidated=True)


def _first_global_row(node: Accumulate, r: Renderer) -> Rows | None:
    """Without GROUP BY there is a row from the first time on, also over nothing."""
    return _empty_global_row(node, r) if r.context.from_nothing else None


def _empty_global_row(node: Accumulate, r: Renderer) -> Rows | None:
    if not node.global_row:
        return None
    zeros = ", ".join(f"0L AS {name}" for name in node.sums.diffs)
    nulls = "".join(f", CAST(NULL AS {dtype}) AS {id}" for id, dtype in node.extreme_types)
    frame = r.context.spark.sql(f"SELECT {zeros}{nulls}")
    return _finished(node, Rows(frame, 1))


def _join_values(node: Accumulate, frame: DataFrame, values: DataFrame | None) -> DataFrame:
    """Accumulators with their groups' extremes beside them."""
    if values is None:
        nulls = (F.expr(f"CAST(NULL AS {dtype})").alias(id) for id, dtype in node.extreme_types)
        return frame.select("*", *nulls)
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    values = values.select(*(F.col(id).alias(name) for id, name in renamed.items()), *(e.id for e in node.extremes))
    return frame.join(values, null_safe(renamed), "left").drop(*renamed.values())


def _with_extremes(node: Accumulate, r: Renderer, merged: Rows, keys: Keys, inserts_only: bool) -> DataFrame:
    """Old and new extremes beside the sums (``dd_old_<id>``, ``dd_new_<id>``), and their change stored.

    A group whose extreme may have gone out is recomputed from the input; any other is compared.
    """
    assert node.values is not None
    trace = r.context.inner.of(node.values)
    stored = None if r.context.from_nothing else trace.contents(new=False, keys=keys if node.keys else None)
    frame = _old_extremes(node, merged.frame, positive(stored).frame if stored else None)
    lost = _any([_lost(e) for e in node.extremes])
    compared = frame.withColumns({f"dd_new_{e.id}": _compared(e) for e in node.extremes}).withColumn("dd_lost", lost)
    rows = r.context.materialize(Rows(compared, merged.estimate))
    result = rows.frame
    if not inserts_only:
        result = _recompute_lost(node, r, rows)
    rows = r.context.materialize(Rows(result, merged.estimate))
    trace.append(r.context.materialize(_values_change(node, rows)), r.context.t1)
    return rows.frame


def _old_extremes(node: Accumulate, frame: DataFrame, stored: DataFrame | None) -> DataFrame:
    if stored is None:
        nulls = (F.expr(f"CAST(NULL AS {dtype})").alias(_OLD + id) for id, dtype in node.extreme_types)
        return frame.select("*", *nulls)
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    old = stored.select(
        *(F.col(id).alias(name) for id, name in renamed.items()),
        *(F.col(e.id).alias(_OLD + e.id) for e in node.extremes),
    )
    return frame.join(old, null_safe(renamed), "left").drop(*renamed.values())


def _lost(e: Extreme) -> SparkColumn:
    """Whether what went out may have been the extreme, and what came in is not at least as extreme."""
    out, old = F.col(_name("out", e)), F.col(_OLD + e.id)
    hit = (out >= old) if e.maximum else (out <= old)
    return F.coalesce(hit, F.lit(False)) | (out.isNotNull() & old.isNull())


def _compared(e: Extreme) -> SparkColumn:
    f = F.greatest if e.maximum else F.least
    return f(F.col(_OLD + e.id), F.col(_name("in", e)))


def _recompute_lost(node: Accumulate, r: Renderer, rows: Rows) -> DataFrame:
    lost = rows.frame.where("dd_lost")
    if rows.local is not None:
        count = sum(1 for flag in rows.local["dd_lost"].to_pylist() if flag)
        if not count:
            return rows.frame
        local = rows.local.filter(rows.local["dd_lost"])
        keys = keys_of(Rows(lost, count, local=local), node.keys)
    else:
        keys = Keys(node.keys, lost.select(*node.keys), rows.estimate)
    source = r.contents(node.input, new=True, keys=keys if node.keys else None)
    if source is None:
        chosen = {f"dd_new_{e.id}": F.when(~F.col("dd_lost"), F.col(f"dd_new_{e.id}")) for e in node.extremes}
        return rows.frame.withColumns(chosen)
    renamed = {id: f"dd_key_{id}" for id in node.keys}
    joined = rows.frame.join(_fresh_extremes(node, source, renamed), null_safe(renamed), "left")
    chosen = {
        f"dd_new_{e.id}": F.when(F.col("dd_lost"), F.col(f"dd_fresh_{e.id}")).otherwise(F.col(f"dd_new_{e.id}"))
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
    old = ", ".join(f"`{_OLD}{id}` AS {id}" for id in ids)
    new = ", ".join(f"`dd_new_{id}` AS {id}" for id in ids)
    was, is_ = f"`{_OLD}{DIFF}` > 0", f"`{_OLD}{DIFF}` + {DIFF} > 0"
    unchanged = f"(struct({old}) <=> struct({new})) AND ({was}) = ({is_})"
    pair = (
        f"array(struct(struct({old}) AS row, CASE WHEN {was} THEN -1L ELSE 0L END AS {DIFF}), "
        f"struct(struct({new}) AS row, CASE WHEN {is_} THEN 1L ELSE 0L END AS {DIFF}))"
    )
    frame = rows.frame.where(f"NOT ({unchanged})").selectExpr(*node.keys, f"explode({pair}) AS dd_row")
    frame = frame.where(f"dd_row.{DIFF} <> 0")
    frame = frame.selectExpr(*node.keys, *(f"dd_row.row.{id} AS {id}" for id in ids), f"dd_row.{DIFF} AS {DIFF}")
    return Rows(frame, 2 * rows.estimate, consolidated=True)
