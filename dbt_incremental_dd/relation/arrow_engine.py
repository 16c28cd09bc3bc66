"""The driver's engine: eager, by Arrow. It raises NotExact wherever Spark might answer otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.types import LONG, Struct
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.local.aggregates import aggregated
from dbt_incremental_dd.local.expressions import Evaluation, evaluate, truth
from dbt_incremental_dd.local.generators import generated
from dbt_incremental_dd.local.grouping import Measured, grouped
from dbt_incremental_dd.local.joining import joined
from dbt_incremental_dd.local.ordering import in_order, running_sums
from dbt_incremental_dd.local.slices import in_slices, is_sliced
from dbt_incremental_dd.local.table import Table, consolidate, lookup, member_mask, require_alike
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import row_numbers
from dbt_incremental_dd.local.windows import with_windows
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.logical.sql_types import type_of
from dbt_incremental_dd.relation.engine import Branch, Kind, Measure, Outputs, Pairs, Running, Side
from dbt_incremental_dd.trace.arrow import arrow_type


class ArrowEngine:
    """Of tables on the driver. ``constants``: what expressions without columns are."""

    def __init__(self, constants: Constants, thresholds: Thresholds) -> None:
        self._constants = constants
        self._thresholds = thresholds

    def select(self, rows: Table, pairs: Pairs) -> Table:
        return rows.select(pairs)

    def map(self, rows: Table, outputs: Outputs) -> Table:
        return in_slices(rows, lambda part: self._mapped(part, outputs))

    def _mapped(self, rows: Table, outputs: Outputs) -> Table:
        values = self._values(rows, outputs)
        schema = Schema(tuple(Column(name, value.type) for name, value in values))
        return Table(pa.table({name: value.data for name, value in values}), schema)

    def extend(self, rows: Table, outputs: Outputs) -> Table:
        return in_slices(rows, lambda part: self._extended(part, outputs))

    def _extended(self, rows: Table, outputs: Outputs) -> Table:
        return rows.with_columns([(name, value.data, value.type) for name, value in self._values(rows, outputs)])

    def filter(self, rows: Table, predicate: Expr) -> Table:
        return in_slices(rows, lambda part: part.filter(truth(part, predicate, self._constants)))

    def union(self, parts: Sequence[Table], *, is_little: bool) -> Table:
        names = parts[0].schema.names
        if any(set(part.schema.columns) != set(parts[0].schema.columns) for part in parts):
            raise NotExact("columns of several types")
        return parts[0].replaced(pa.concat_tables([part.arrow.select(list(names)) for part in parts]))

    def consolidate(self, rows: Table, diffs: Sequence[str]) -> Table:
        return consolidate(rows, diffs)

    def group_by(self, rows: Table, keys: Sequence[str], measures: Sequence[Measure]) -> Table:
        found = in_slices(rows, lambda part: self._grouped(part, keys, measures))
        return self._grouped(found, keys, [_of_parts(m) for m in measures]) if is_sliced(rows) else found

    def _grouped(self, rows: Table, keys: Sequence[str], measures: Sequence[Measure]) -> Table:
        values = Evaluation(rows, self._constants)
        found = [Measured(m.name, m.function, values.of(m.value), type_of(m.dtype)) for m in measures]
        return grouped(rows, keys, found)

    def join(
        self,
        left: Table,
        right: Table,
        kind: Kind,
        equalities: Sequence[Equality],
        residual: Sequence[Expr],
        broadcast: Side | None,
    ) -> Table:
        return joined(
            left,
            right,
            kind,
            equalities=equalities,
            residual=residual,
            constants=self._constants,
            most=self._thresholds,
        )

    def restrict(self, rows: Table, keys: Table, columns: Sequence[str], *, inside: bool, is_small: bool) -> Table:
        require_alike(rows, keys, columns)
        mask = member_mask(rows.arrow, keys.arrow, columns)
        return rows.filter(mask if inside else pc.invert(mask))

    def lookup(self, rows: Table, other: Table, keys: Sequence[str], columns: Pairs, *, is_little: bool) -> Table:
        require_alike(rows, other, keys)
        found = lookup(rows.arrow, other.arrow, keys, list(dict.fromkeys(source for _, source in columns)))
        types = {column.name: column.type for column in other.schema}
        return rows.with_columns([(name, found[source], types[source]) for name, source in columns])

    def running(self, rows: Table, keys: Sequence[str], order: Sequence[Order], sums: Sequence[Running]) -> Table:
        values = [(s.name, evaluate(rows, s.value, self._constants), s.through) for s in sums]
        return running_sums(rows, keys, order, values)

    def window(self, rows: Table, functions: Outputs) -> Table:
        return with_windows(rows, functions, self._constants)

    def generate(self, rows: Table, call: str, outputs: Sequence[str], *, outer: bool) -> Table:
        return generated(rows, Expr(call), outputs, self._constants, outer=outer)

    def unpivot(self, rows: Table, branches: Sequence[Branch]) -> Table:
        parts, values = [], self._values(rows, [(DIFF, branch.diff) for branch in branches])
        for branch, (_, diffs) in zip(branches, values, strict=True):
            part = rows.select(branch.columns).arrow.append_column(DIFF, diffs.data.cast(pa.int64()))
            parts.append(part.filter(pc.not_equal(part[DIFF], 0)))
        schema = Schema((*rows.select(branches[0].columns).schema.columns, DIFF_COLUMN))
        return Table(pa.concat_tables(parts), schema)

    def pack(self, rows: Table, name: str, type: Struct, sources: Sequence[str]) -> Table:
        dtype = arrow_type(type)
        if dtype is None:
            raise NotExact(f"{name} is a {type}")
        packed = pa.nulls(rows.num_rows, dtype)
        if sources:
            parts = [rows.arrow[source].combine_chunks() for source in sources]
            packed = pa.StructArray.from_arrays(parts, fields=list(dtype))
        return _without(rows, sources).with_column(name, packed, type)

    def unpack(self, rows: Table, name: str, columns: Sequence[str]) -> Table:
        type, packed = rows.type(name), rows.arrow[name]
        if not isinstance(type, Struct) or arrow_type(type) is None:
            raise NotExact(f"{name} is a {type}")
        fields = enumerate(zip(columns, type.fields, strict=False))
        unpacked = [(column, pc.struct_field(packed, [place]), field.type) for place, (column, field) in fields]
        return _without(rows, [name]).with_columns(unpacked)

    def copies(self, rows: Table, number: str) -> Table:
        counts = pc.abs(rows.arrow[DIFF])
        ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts).combine_chunks()])
        copies = row_numbers(ends[-1].as_py())
        parents = pc.list_parent_indices(pa.LargeListArray.from_arrays(ends, copies))
        numbers = pc.add(pc.subtract(copies, ends.take(parents)), 1)
        return rows.take(parents).with_column(number, numbers, LONG)

    def aggregate(self, rows: Table, keys: Sequence[str], outputs: Outputs) -> Table:
        return aggregated(rows, keys, outputs, self._constants)

    def first(self, rows: Table, order: Sequence[Order], count: int) -> Table:
        return rows.replaced(in_order(rows, order).arrow.slice(0, count))

    def _values(self, rows: Table, outputs: Outputs) -> list[tuple[str, Value]]:
        """Columns as they are, whatever their types; else what Arrow evaluates."""
        names, values, found = rows.schema.names, None, []
        for name, expr in outputs:
            source = _column_of(expr)
            if source is not None and source in names:
                found.append((name, Value(rows.arrow[source], rows.type(source))))
                continue
            values = values or Evaluation(rows, self._constants)
            found.append((name, values.of(expr)))
        return found


def _of_parts(measure: Measure) -> Measure:
    """Sums of sums, and extremes of extremes."""
    return replace(measure, value=Expr.column(measure.name))


def _column_of(expr: Expr) -> str | None:
    try:
        return expr.as_column
    except SqlglotError as error:
        raise NotExact(f"{expr.sql}: {error}") from error


def _without(rows: Table, names: Sequence[str]) -> Table:
    return rows.select([(name, name) for name in rows.schema.names if name not in names])
