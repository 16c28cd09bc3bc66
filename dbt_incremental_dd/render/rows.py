"""Rows of a collection on their way through a plan: in Spark, or on the driver where they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce as fold
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.local.expressions import truth
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.local import Local, consolidate_local
from dbt_incremental_dd.trace.read import consolidate, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rows:
    """Updates of one time: columns by id, and ``dd_diff``.

    ``estimate``: about how many rows at most. ``positive``: every diff is >= 1. ``consolidated``: no two rows are
    equal.
    """

    source: DataFrame | Local
    estimate: int
    positive: bool = False
    consolidated: bool = False

    @property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        return self.source.frame if isinstance(self.source, Local) else self.source

    @property
    def local(self) -> pa.Table | None:
        """The rows on the driver, if they are there."""
        return self.source.table if isinstance(self.source, Local) else None

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.source.schema if isinstance(self.source, Local) else schema_of(self.source.schema)

    def mapped(self, frame: DataFrame) -> Rows:
        """Other columns of the same rows."""
        return replace(self, source=frame, consolidated=False)

    def renamed(self, pairs: Sequence[tuple[str, str]]) -> Rows:
        """The columns (name, source) and ``dd_diff``; equal rows may become of different ones."""
        pairs = [*pairs, (DIFF, DIFF)]
        if not isinstance(self.source, Local):
            return self.mapped(self.source.select(*(F.col(old).alias(new) for new, old in pairs)))
        types = {column.name: column for column in self.source.schema}
        schema = Schema(tuple(replace(types[old], name=new) for new, old in pairs))
        table = self.source.table.select([old for _, old in pairs]).rename_columns([new for new, _ in pairs])
        return replace(self, source=Local(self.source.spark, table, schema), consolidated=False)

    @property
    def is_small(self) -> bool:
        """Whether it can be broadcast."""
        return self.estimate <= limits.BROADCAST_ROWS


def filtered(rows: Rows, predicate: Expr) -> Rows:
    """The rows for which the predicate is true; on the driver where they are there and Spark need not be asked."""
    local = rows.source
    mask = truth(local, predicate) if isinstance(local, Local) else None
    if mask is None or not isinstance(local, Local):
        return replace(rows, source=rows.frame.where(F.expr(predicate.sql)))
    table = local.table.filter(mask)
    return replace(rows, source=local.with_table(table), estimate=table.num_rows)


def positive(rows: Rows) -> Rows:
    """The same multiset, with diffs of at least 1 and no two equal rows where any could cancel."""
    return rows if rows.positive else replace(consolidated(rows), positive=True)


def consolidated(rows: Rows) -> Rows:
    """The same updates, equal rows summed and zeros dropped."""
    if rows.consolidated:
        return rows
    if isinstance(rows.source, Local) and is_readable(rows.source.schema):
        table = consolidate_local(rows.source.table, [DIFF])
        return replace(rows, source=rows.source.with_table(table), consolidated=True)
    return replace(rows, source=consolidate(rows.frame), consolidated=True)


def expanded(rows: Rows) -> DataFrame:
    """A positive multiset with each row as often as it counts; without ``dd_diff``."""
    rows = positive(rows)
    if rows.local is not None and pc.all(pc.equal(rows.local[DIFF], 1)).as_py() is not False:
        return rows.frame.drop(DIFF)
    repeated = rows.frame.withColumn("dd_copy", F.explode(F.expr(f"array_repeat(0, CAST({DIFF} AS INT))")))
    return repeated.drop("dd_copy", DIFF)


def repeated(table: pa.Table) -> pa.Table:
    """Each row of a multiset on the driver as often as it counts, with a diff of 1."""
    counts = table[DIFF]
    if pc.all(pc.equal(counts, 1)).as_py() is not False:
        return table
    ends = [0, *pc.cumulative_sum(counts).to_pylist()]
    copies = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.nulls(ends[-1]))
    table = table.take(pc.list_parent_indices(copies))
    return table.set_column(table.column_names.index(DIFF), DIFF, pa.array([1] * table.num_rows, pa.int64()))


def negated(rows: Rows | None) -> Rows | None:
    """All diffs negated."""
    if rows is None:
        return None
    if isinstance(rows.source, Local):
        table = rows.source.table
        table = table.set_column(table.column_names.index(DIFF), DIFF, pc.negate(table[DIFF]))
        return replace(rows, source=rows.source.with_table(table), positive=False)
    return replace(rows, source=rows.source.withColumn(DIFF, -F.col(DIFF)), positive=False)


def plus(parts: Sequence[Rows | None]) -> Rows | None:
    """The sum of several deltas over the same columns; None where all are empty."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) == 1:
        return present[0]
    estimate = sum(part.estimate for part in present)
    return Rows(_union(present, estimate), estimate, positive=all(part.positive for part in present))


def _union(parts: Sequence[Rows], estimate: int) -> DataFrame | Local:
    first = parts[0].source
    if isinstance(first, Local) and all(part.local is not None and part.schema == first.schema for part in parts):
        return first.with_table(pa.concat_tables([part.local for part in parts]))
    frame = fold(lambda a, b: a.unionByName(b), (part.frame for part in parts))
    return frame.coalesce(1) if estimate <= limits.TASK_ROWS else frame
