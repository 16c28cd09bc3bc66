"""Rows of a collection on their way through a plan, and restrictions of it to some keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.logical.nodes import Id
from dbt_incremental_dd.trace.read import consolidate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_BOUNDED = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date)
LOCAL_ROWS = 20_000
"""Deltas of at most so many rows are brought to the driver, where they become literals and small files."""
BROADCAST_ROWS = 500_000
"""A side of at most so many rows is sent to every task instead of being shuffled."""


@dataclass(frozen=True)
class Rows:
    """Updates of one time: columns by id, and ``dd_diff``.

    ``estimate``: about how many rows at most. ``positive``: every diff is >= 1. ``consolidated``: no two rows are
    equal. ``local``: the very same rows on the driver, if they are there; ``unfiltered``: these and perhaps others.
    """

    frame: DataFrame
    estimate: int
    positive: bool = False
    consolidated: bool = False
    local: pa.Table | None = field(default=None, compare=False)
    unfiltered: pa.Table | None = field(default=None, compare=False)

    def mapped(self, frame: DataFrame) -> Rows:
        """Other columns of the same rows."""
        return replace(self, frame=frame, consolidated=False, local=None)

    @property
    def is_small(self) -> bool:
        """Whether it can be broadcast."""
        return self.estimate <= BROADCAST_ROWS


@dataclass(frozen=True)
class Keys:
    """Restricts contents to rows whose ``columns`` equal (NULL-safely) a row of ``frame``, which has these columns.

    ``values`` are the sorted values of a column, where they are on the driver and hold no NULL. An ``advisory``
    restriction may be ignored, in part or whole: the caller selects again.
    """

    columns: tuple[Id, ...]
    frame: DataFrame
    estimate: int
    values: Mapping[Id, Sequence[Any]] = field(default_factory=dict)
    advisory: bool = False

    @property
    def is_few(self) -> bool:
        """Whether a restriction by them is worth assuming."""
        return self.estimate <= BROADCAST_ROWS

    def renamed(self, to: Mapping[Id, Id]) -> Keys:
        """The same restriction in terms of other columns."""
        frame = self.frame.select(*(F.col(id).alias(to[id]) for id in self.columns))
        values = {to[id]: found for id, found in self.values.items()}
        return replace(self, columns=tuple(to[id] for id in self.columns), frame=frame, values=values)

    def only(self, columns: Sequence[Id]) -> Keys:
        """The weaker restriction by some of the columns."""
        kept = tuple(id for id in self.columns if id in columns)
        values = {id: found for id, found in self.values.items() if id in kept}
        return replace(self, columns=kept, frame=self.frame.select(*kept).distinct(), values=values)

    def semi_join(self, frame: DataFrame) -> DataFrame:
        """The rows of ``frame`` that it admits."""
        other = self.frame.select(*(F.col(id).alias(f"dd_key_{id}") for id in self.columns))
        if self.estimate <= BROADCAST_ROWS:
            other = F.broadcast(other)
        return frame.join(other, null_safe({id: f"dd_key_{id}" for id in self.columns}), "left_semi")


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """A DataFrame of a driver-side table, with exactly the types of ``schema``."""
    if table.num_rows == 0:
        return spark.createDataFrame([], schema)
    made = spark.createDataFrame(table)
    if [f.dataType for f in made.schema] == [f.dataType for f in schema]:
        return made
    return made.select(*(F.col(f.name).cast(f.dataType).alias(f.name) for f in schema))


def null_safe(pairs: Mapping[str, str]) -> Column:
    """All pairs equal, NULL to NULL."""
    if not pairs:
        return F.lit(True)
    return fold(lambda a, b: a & b, (F.col(left).eqNullSafe(F.col(right)) for left, right in pairs.items()))


def keys_of(rows: Rows, columns: tuple[Id, ...], advisory: bool = False) -> Keys:
    """The distinct values that ``columns`` have in ``rows``."""
    return Keys(columns, rows.frame.select(*columns).distinct(), rows.estimate, local_values(rows, columns), advisory)


def local_values(rows: Rows, columns: Sequence[Id]) -> dict[Id, list[Any]]:
    """Sorted values of columns that are on the driver; of types that files have bounds for, and without NULL."""
    if rows.local is None:
        return {}
    found = {}
    for id in columns:
        column = rows.local[id]
        kind = column.type
        if column.null_count or not (
            pa.types.is_integer(kind)
            or pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_date(kind)
        ):
            continue
        found[id] = sorted(pc.unique(column).to_pylist())
    return found


def positive(rows: Rows) -> Rows:
    """The same multiset, with diffs of at least 1 and no two equal rows where any could cancel."""
    if rows.positive:
        return rows
    return Rows(consolidate(rows.frame), rows.estimate, positive=True, consolidated=True)


def consolidated(rows: Rows) -> Rows:
    """The same updates, equal rows summed and zeros dropped."""
    return rows if rows.consolidated else replace(rows, frame=consolidate(rows.frame), consolidated=True, local=None)


def expanded(rows: Rows) -> DataFrame:
    """A positive multiset with each row as often as it counts; without ``dd_diff``."""
    frame = positive(rows).frame
    repeated = frame.withColumn("dd_copy", F.explode(F.expr(f"array_repeat(0, CAST({DIFF} AS INT))")))
    return repeated.drop("dd_copy", DIFF)


def negated(frame: DataFrame) -> DataFrame:
    """All diffs negated."""
    return frame.withColumn(DIFF, -F.col(DIFF))


def plus(parts: Sequence[Rows | None]) -> Rows | None:
    """The sum of several deltas over the same columns; None where all are empty."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) == 1:
        return present[0]
    frame = fold(lambda a, b: a.unionByName(b), (part.frame for part in present))
    return Rows(frame, sum(p.estimate for p in present), positive=all(p.positive for p in present))
