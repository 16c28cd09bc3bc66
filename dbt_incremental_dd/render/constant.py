"""Constant: there from the beginning, never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.logical.nodes import Constant, Node
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """All of it where the model is built from nothing, else nothing."""
    return contents(node, r, True, None) if r.context.from_nothing else None


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The query's rows, each once."""
    assert isinstance(node, Constant)
    frame = r.context.spark.sql(node.sql).toDF(*node.ids).withColumn(DIFF, F.lit(1).cast("bigint"))
    frame = frame if keys is None else keys.semi_join(frame)
    return Rows(frame, 1_000, positive=True)
