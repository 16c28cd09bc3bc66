"""The order of rows in a top-k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window as W
from pyspark.sql import functions as F

from dbt_incremental_dd.differential.groups import TopGroups
from dbt_incremental_dd.differential.top import KeptTop

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_RANK = "dd_rank"


def ordering(node: TopGroups | KeptTop) -> Sequence[Column]:
    """The operator's order, then its ties."""
    directed = [_directed(F.expr(o.expr.sql), o.descending, o.nulls_first) for o in node.order]
    return [*directed, *(F.col(id).asc_nulls_first() for id in node.ties)]


def _directed(column: Column, descending: bool, nulls_first: bool) -> Column:
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def top(node: TopGroups | KeptTop, frame: DataFrame) -> DataFrame:
    """In each group the rows that are asked for, of rows without diffs."""
    numbered = frame.withColumn(_RANK, F.row_number().over(W.partitionBy(*node.keys).orderBy(*ordering(node))))
    inside = F.col(_RANK) > node.offset
    if node.limit is not None:
        inside = inside & (F.col(_RANK) <= node.offset + node.limit)
    return numbered.where(inside).drop(_RANK)
