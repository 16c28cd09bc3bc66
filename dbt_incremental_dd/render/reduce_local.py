"""Grouped aggregation on the driver: a delta's sums by group, the outputs of sums, and their change.

Each function answers None where an expression is not one that Arrow evaluates as Spark does, or a type not one that it
groups or orders as Spark does; then Spark has to do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce as fold

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, Decimal, Type
from dbt_incremental_dd.differential.reduce import Accumulate, Extreme
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.value import Value
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Id
from dbt_incremental_dd.logical.sql_types import type_of
from dbt_incremental_dd.render.outputs import NEW, OLD, in_out
from dbt_incremental_dd.render.rows import Rows, positive
from dbt_incremental_dd.trace.arrow import arrow_type, is_ordered, is_plain, same_values
from dbt_incremental_dd.trace.local import Local, lookup_local

_ALL = "dd_all"
"""The key of the one group of everything."""
_LONG = 2**63


@dataclass(frozen=True)
class _Measure:
    """What ``function`` (sum, min, max) makes one value of, by group; ``type`` is the result's."""

    values: pa.ChunkedArray
    function: str
    type: Type


def summed(node: Accumulate, source: Rows) -> Rows | None:
    """The delta summed by group: keys, ``dd_diff``, accumulators, and the extremes in and out."""
    local = source.source
    if not isinstance(local, Local) or not is_plain(local.schema.select(node.keys)):
        return None
    measures = {**_sums(node, local), **_in_and_out(node, local)}
    table = _grouped(local, node.keys, measures)
    if table is None:
        return None
    if not source.positive:
        sums = set(node.sums.diffs)
        touched = (_is_not_zero(table[n]) if n in sums else pc.is_valid(table[n]) for n in measures)
        table = table.filter(fold(pc.or_, touched))
    columns = (*local.schema.select(node.keys), *(Column(name, m.type) for name, m in measures.items() if m))
    return Rows(Local(local.spark, table, Schema(columns)), table.num_rows, consolidated=True)


def beside_former(node: Accumulate, change: Rows, before: Rows | None) -> Rows | None:
    """The sums' change with each sum's old value beside it (``dd_old_<name>``), 0 where the group is new."""
    new = change.source
    if not isinstance(new, Local) or not is_plain(new.schema.select(node.keys)):
        return None
    if before is not None and before.local is None:
        return None
    table, names = new.table, node.sums.diffs
    old = pa.table({name: pa.nulls(table.num_rows, table[name].type) for name in names})
    if before is not None and before.local is not None:
        old = lookup_local(table, before.local, node.keys, names)
    for name in names:
        zero = pa.scalar(0).cast(table[name].type)
        table = table.append_column(OLD + name, pc.fill_null(old[name], zero))
    beside = (Column(OLD + column.name, column.type) for column in new.schema.select(names))
    return replace(change, source=Local(new.spark, table, Schema((*new.schema.columns, *beside))))


def difference(node: Accumulate, merged: Rows, from_nothing: bool) -> Rows | None:
    """For each group the new output row, and the old one negated, unless they are equal.

    ``merged``: the sums' change and old values; the extremes' old and new ones (``dd_old_<id>``, ``dd_new_<id>``).
    """
    local = merged.source
    if not isinstance(local, Local):
        return None
    old_sums = {name: local.table[OLD + name] for name in node.sums.diffs}
    new_sums = _added(old_sums, local.table)
    old, new = _side(node, local, OLD, old_sums), _side(node, local, NEW, new_sums)
    if old is None or new is None:
        return None
    old_rows, new_rows = _outputs(node, old), _outputs(node, new)
    if old_rows is None or new_rows is None:
        return None
    was = pa.chunked_array([pa.repeat(0, local.table.num_rows)]) if from_nothing else _multiplicity(node, old.table)
    is_ = _multiplicity(node, new.table)
    same = fold(pc.and_, (same_values(old_rows[id].data, v.data) for id, v in new_rows.items()), pc.equal(was, was))
    first = pc.if_else(same, pc.subtract(is_, was), is_)
    second = pc.if_else(same, 0, pc.negate(was))
    keys = {id: local.table[id] for id in node.keys}
    both = pa.concat_tables([_updates(keys, new_rows, first), _updates(keys, old_rows, second)])
    schema = (*local.schema.select(node.keys), *(Column(id, v.type) for id, v in new_rows.items()), DIFF_COLUMN)
    return Rows(Local(local.spark, both, Schema(schema)), both.num_rows, consolidated=True)


def finished(node: Accumulate, sums: Rows) -> Rows | None:
    """The outputs of whole accumulators, extremes beside them."""
    local = sums.source
    found = _outputs(node, local) if isinstance(local, Local) else None
    if found is None or not isinstance(local, Local):
        return None
    table = _updates({id: local.table[id] for id in node.keys}, found, _multiplicity(node, local.table))
    schema = (*local.schema.select(node.keys), *(Column(id, v.type) for id, v in found.items()), DIFF_COLUMN)
    return Rows(Local(local.spark, table, Schema(schema)), table.num_rows, positive=True, consolidated=True)


def with_values(node: Accumulate, sums: Rows, values: Rows | None) -> Rows | None:
    """Accumulators with their groups' extremes beside them."""
    local = sums.source
    if not isinstance(local, Local) or not is_plain(local.schema.select(node.keys)):
        return None
    if values is None or values.local is None:
        return None
    ids = tuple(e.id for e in node.extremes)
    found = lookup_local(local.table, positive(values).local, node.keys, ids)
    table = fold(lambda made, id: made.append_column(id, found[id]), ids, local.table)
    schema = Schema((*local.schema.columns, *values.schema.select(ids)))
    return replace(sums, source=Local(local.spark, table, schema))


def fresh(node: Accumulate, source: Rows) -> pa.Table | None:
    """The groups' extremes in an input's contents: keys, and ``dd_fresh_<id>``."""
    local = positive(source).source
    if not isinstance(local, Local) or not is_plain(local.schema.select(node.keys)):
        return None
    return _grouped(
        local, node.keys, {f"dd_fresh_{e.id}": _extreme(e, evaluate(local, e.value)) for e in node.extremes}
    )


def _multiplicity(node: Accumulate, sums: pa.Table) -> pa.ChunkedArray:
    """How often each group's row is there."""
    count = sums[DIFF]
    if node.global_row:
        return pa.chunked_array([pa.repeat(1, len(count))])
    return pc.max_element_wise(count, 0) if node.threshold else pc.cast(pc.greater(count, 0), pa.int64())


def _sums(node: Accumulate, local: Local) -> dict[str, _Measure | None]:
    """The delta's count and accumulators; None for one that cannot be summed here."""
    found: dict[str, _Measure | None] = {DIFF: _sum(Value(local.table[DIFF], LONG), LONG)}
    return found | {a.name: _sum(evaluate(local, Expr(a.value)), type_of(a.dtype)) for a in node.accumulators}


def _sum(value: Value | None, type: Type) -> _Measure | None:
    """None where adding the values up might overflow."""
    if value is None:
        return None
    bounds = pc.min_max(value.data).as_py()
    most = max(abs(bounds["min"] or 0), abs(bounds["max"] or 0)) * len(value.data)
    if value.type == LONG and most < _LONG:
        return _Measure(value.data, "sum", type)
    if not isinstance(value.type, Decimal) or most >= 10 ** (38 - value.type.scale):
        return None
    return _Measure(pc.cast(value.data, pa.decimal128(38, value.type.scale)), "sum", type)


def _in_and_out(node: Accumulate, local: Local) -> dict[str, _Measure | None]:
    """Each extreme of what comes in, and of what goes out."""
    found = {}
    comes = pc.greater(local.table[DIFF], 0)
    for e in node.extremes:
        value = evaluate(local, e.value)
        for kind, mask in (("in", comes), ("out", pc.invert(comes))):
            some = None if value is None else Value(pc.if_else(mask, value.data, None), value.type)
            found[in_out(kind, e)] = _extreme(e, some)
    return found


def _extreme(e: Extreme, value: Value | None) -> _Measure | None:
    if value is None or not is_ordered(Schema((Column(e.id, value.type),))):
        return None
    return _Measure(value.data, "max" if e.maximum else "min", value.type)


def _grouped(local: Local, keys: Sequence[Id], measures: Mapping[str, _Measure | None]) -> pa.Table | None:
    """The keys, and each measure by group; a sum of nothing is 0."""
    table = local.table.select(list(keys)) if keys else pa.table({_ALL: pa.repeat(0, local.table.num_rows)})
    by, how = table.column_names, []
    for name, measure in measures.items():
        if measure is None:
            return None
        table = table.append_column(name, measure.values)
        how.append((name, measure.function))
    try:
        grouped = table.group_by(by, use_threads=False).aggregate(how)
        columns = {id: grouped[id] for id in keys}
        for name, measure in measures.items():
            if measure is not None:
                values = grouped[f"{name}_{measure.function}"]
                values = pc.fill_null(values, pa.scalar(0).cast(values.type)) if measure.function == "sum" else values
                columns[name] = values.cast(arrow_type(measure.type))
    except pa.ArrowException:  # a type that it does not order, a sum that does not fit
        return None
    return pa.table(columns)


def _added(old: Mapping[str, pa.ChunkedArray], change: pa.Table) -> dict[str, pa.ChunkedArray] | None:
    try:
        return {name: pc.add_checked(values, change[name]).cast(values.type) for name, values in old.items()}
    except pa.ArrowException:
        return None


def _side(node: Accumulate, local: Local, prefix: str, sums: Mapping[str, pa.ChunkedArray] | None) -> Local | None:
    """Whole sums, new or old, and the extremes beside them, under their own names."""
    if sums is None:
        return None
    values = {e.id: local.table[prefix + e.id] for e in node.extremes}
    types = {e.id: local.schema.select((prefix + e.id,)).columns[0].type for e in node.extremes}
    schema = (*local.schema.select(node.sums.diffs), *(Column(id, type) for id, type in types.items()))
    return Local(local.spark, pa.table({**sums, **values}), Schema(schema))


def _outputs(node: Accumulate, sums: Local) -> dict[Id, Value] | None:
    found = {}
    for id, sql in node.outputs:
        value = evaluate(sums, Expr(sql))
        if value is None or not is_plain(Schema((Column(id, value.type),))):
            return None
        found[id] = value
    return found


def _updates(keys: Mapping[Id, pa.ChunkedArray], rows: Mapping[Id, Value], diffs: pa.ChunkedArray) -> pa.Table:
    table = pa.table({**keys, **{id: value.data for id, value in rows.items()}, DIFF: diffs})
    return table.filter(pc.not_equal(table[DIFF], 0))


def _is_not_zero(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.not_equal(values, pa.scalar(0).cast(values.type))
