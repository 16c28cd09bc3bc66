"""Equi-joins of a small delta with what its keys found, on the driver: a step of a delta query without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context

_KEY_TYPES = ("byte", "short", "integer", "long", "string", "date")
"""Types of which Arrow and Spark agree on ``=``."""
_OTHER = "dd_diff_other"


def join_locally(context: Context, rows: Rows, other: Rows, equalities: Sequence[Equality]) -> Rows | None:
    """The inner join, diffs multiplied; None where Spark has to do it.

    That is so where an equality is not between plain columns of one type, or where there is too much of anything.
    """
    pairs = [(e.left.as_column, e.right.as_column) for e in equalities if not e.null_safe]
    left = rows.source
    if not isinstance(left, Local) or len(pairs) < len(equalities) or not pairs:
        return None
    if any(a is None or b is None for a, b in pairs) or other.estimate > limits.FOUND_ROWS:
        return None
    columns = [(str(a), str(b)) for a, b in pairs]
    if not _agree(rows.schema, other.schema, columns):
        return None
    right = context.localized(other, limits.FOUND_ROWS).source
    if not isinstance(right, Local) or left.table.num_rows * _most_equal(right.table, columns) > limits.JOINED_ROWS:
        return None
    return _joined(left, right, columns, rows.positive and other.positive)


def _agree(left: Schema, right: Schema, columns: Sequence[tuple[str, str]]) -> bool:
    if not is_readable(left) or not is_readable(right) or len({b for _, b in columns}) < len(columns):
        return False
    ours = {column.name: column.type for column in left}
    theirs = {column.name: column.type for column in right}
    return all(ours[a] == theirs[b] and ours[a] in _KEY_TYPES for a, b in columns)


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
