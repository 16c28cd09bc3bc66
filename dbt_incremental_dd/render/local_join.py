"""Equi-joins of few rows with what their keys found, on the driver, where no Spark job has to be planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce as fold
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.differential.outer_join import Kind
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.render.rows import Rows, filtered
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES, is_readable
from dbt_incremental_dd.trace.local import Local, member_mask

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context

_OTHER = "dd_diff_other"
_ROW = "dd_row"


def join_locally(context: Context, rows: Rows, other: Rows, equalities: Sequence[Equality]) -> Rows | None:
    """The inner join, diffs multiplied; None where Spark has to do it.

    That is so where an equality is not between plain columns of one type, or where there is too much of anything.
    """
    left, columns = rows.source, _key_columns(rows, other, equalities)
    if columns is None or not isinstance(left, Local) or other.estimate > limits.FOUND_ROWS:
        return None
    right = context.localized(other, limits.FOUND_ROWS).source
    if not isinstance(right, Local) or left.table.num_rows * _most_equal(right.table, columns) > limits.JOINED_ROWS:
        return None
    return _joined(left, right, columns, rows.positive and other.positive)


def outer_join_locally(
    kind: Kind, rows: Rows, other: Rows, equalities: Sequence[Equality], residual: Sequence[Expr]
) -> Rows | None:
    """The left outer, semi or anti join with a multiset that is on the driver; None where Spark has to do it."""
    if all(e.left.as_column and e.right.as_column for e in equalities):
        return _outer_join(kind, rows, other, equalities, residual)
    left, right = _keyed(rows, [e.left for e in equalities]), _keyed(other, [e.right for e in equalities])
    if left is None or right is None:
        return None
    keys = [replace(e, left=left[1][i], right=right[1][i]) for i, e in enumerate(equalities)]
    found = _outer_join(kind, left[0], right[0], keys, residual)
    names = (*rows.schema.names, *(other.schema.names if kind == "left" else ()))
    return None if found is None else found.renamed([(name, name) for name in names if name != DIFF])


def _keyed(rows: Rows, keys: Sequence[Expr]) -> tuple[Rows, list[Expr]] | None:
    """Rows on the driver with what a join compares as columns of their own; None where Spark has to evaluate it."""
    local = rows.source
    columns: list[Column] = []
    if not isinstance(local, Local):
        return None
    for key in keys:
        value = evaluate(local, key)
        if value is None:
            return None
        columns.append(Column(f"dd_key_{uuid4().hex}", value.type))
        table = local.table.append_column(columns[-1].name, value.data)
        local = Local(local.spark, table, Schema((*local.schema.columns, columns[-1])))
    return replace(rows, source=local), [Expr.column(column.name) for column in columns]


def _outer_join(
    kind: Kind, rows: Rows, other: Rows, equalities: Sequence[Equality], residual: Sequence[Expr]
) -> Rows | None:
    left, right, columns = rows.source, other.source, _key_columns(rows, other, equalities)
    if columns is None or not isinstance(left, Local) or not isinstance(right, Local):
        return None
    if not residual and kind != "left":
        keys = right.table.select([b for _, b in columns]).rename_columns([a for a, _ in columns]).drop_null()
        return _where(rows, left, member_mask(left.table, keys, [a for a, _ in columns]), kind == "semi")
    if left.table.num_rows * _most_equal(right.table, columns) > limits.JOINED_ROWS:
        return None
    numbers = pa.array(range(left.table.num_rows), pa.int64())
    schema = Schema((*left.schema.columns, Column(_ROW, LONG)))
    numbered = Local(left.spark, left.table.append_column(_ROW, numbers), schema)
    matches = fold(filtered, residual, _joined(numbered, right, columns, rows.positive)).source
    if not isinstance(matches, Local):
        return None
    matched = pc.is_in(numbers, value_set=matches.table[_ROW].combine_chunks())
    if kind != "left":
        return _where(rows, left, matched, kind == "semi")
    return _null_extended(rows, left.table.filter(pc.invert(matched)), matches)


def _where(rows: Rows, local: Local, mask: pa.Array | pa.ChunkedArray, wanted: bool) -> Rows:
    table = local.table.filter(mask if wanted else pc.invert(mask))
    return replace(rows, source=local.with_table(table), estimate=table.num_rows)


def _null_extended(rows: Rows, unmatched: pa.Table, matches: Local) -> Rows:
    """A left join's rows: its matches, and what has none."""
    schema = Schema(tuple(column for column in matches.schema if column.name != _ROW))
    found = matches.table.select(list(schema.names))
    table = pa.concat_tables([found, unmatched], promote_options="default")
    return Rows(Local(matches.spark, table, schema), table.num_rows, positive=rows.positive)


def _key_columns(rows: Rows, other: Rows, equalities: Sequence[Equality]) -> list[tuple[str, str]] | None:
    """The equalities' columns, if they are between plain columns on which Arrow and Spark agree."""
    columns = [(e.left.as_column, e.right.as_column) for e in equalities if not e.null_safe]
    pairs = [(a, b) for a, b in columns if a is not None and b is not None]
    if not pairs or len(pairs) < len(equalities) or not _agree(rows.schema, other.schema, pairs):
        return None
    return pairs


def _agree(left: Schema, right: Schema, columns: Sequence[tuple[str, str]]) -> bool:
    if not is_readable(left) or not is_readable(right):
        return False
    if any(len(set(side)) < len(columns) for side in zip(*columns, strict=True)):
        return False
    ours = {column.name: column.type for column in left}
    theirs = {column.name: column.type for column in right}
    return all(ours[a] == theirs[b] and ours[a] in BOUNDED_TYPES for a, b in columns)


def _most_equal(table: pa.Table, columns: Sequence[tuple[str, str]]) -> int:
    """The number of rows that the most frequent key has."""
    if not table.num_rows:
        return 0
    names = [b for _, b in columns]
    counted = table.select(names).group_by(names).aggregate([([], "count_all")])
    return int(pc.max(counted["count_all"]).as_py())


def _joined(left: Local, right: Local, columns: Sequence[tuple[str, str]], positive: bool) -> Rows:
    schema = Schema(tuple(c for c in (*left.schema, *right.schema) if c.name != DIFF))
    renamed = [_OTHER if name == DIFF else name for name in right.table.column_names]
    both = left.table.join(
        right.table.rename_columns(renamed),
        keys=[a for a, _ in columns],
        right_keys=[b for _, b in columns],
        join_type="inner",
        coalesce_keys=False,
    )
    diffs = pc.multiply_checked(both[DIFF], both[_OTHER])
    table = pa.table({**{name: both[name] for name in schema.names}, DIFF: diffs})
    source = Local(left.spark, table, Schema((*schema.columns, DIFF_COLUMN)))
    return Rows(source, table.num_rows, positive=positive)
