"""Relations that are the answers of SQL queries, whatever these are: Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def answer(workspace: Workspace, sql: str, ids: Sequence[str], *, estimate: int) -> Relation:
    """The query's rows, each as often as it is there, its columns by these ids."""
    return counted(workspace, workspace.spark.sql(sql).toDF(*ids), estimate)


def constant(workspace: Workspace, sql: str, ids: Sequence[str], *, estimate: int) -> Relation:
    """The same of a query over nothing, whose rows are remembered if they are few."""
    rows = workspace.constants.rows_of(sql)
    if rows is None:
        return answer(workspace, sql, ids, estimate=estimate)
    renamed = rows.select(list(zip(ids, rows.schema.names, strict=True)))
    counted_rows = renamed.with_column(DIFF, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows), LONG)
    return Relation.of(workspace, counted_rows.arrow, counted_rows.schema, positive=True)


def counted(workspace: Workspace, frame: DataFrame, estimate: int) -> Relation:
    """Rows without ``dd_diff``, each with one of 1."""
    return Relation(workspace, frame.selectExpr("*", f"1L AS {DIFF}"), estimate, positive=True)


def no_rows(workspace: Workspace, types: Sequence[tuple[str, str]]) -> Relation:
    """No rows, of columns with these SQL types."""
    columns = [*(f"CAST(NULL AS {dtype}) AS {name}" for name, dtype in types), f"1L AS {DIFF}"]
    frame = workspace.spark.sql(f"SELECT {', '.join(columns)} LIMIT 0")
    return Relation(workspace, frame, 0, positive=True, consolidated=True)


def view(rows: Relation) -> str:
    """The name of a view of a multiset's rows, each as often as it counts, without ``dd_diff``."""
    return rows.workspace.view(rows.expand().frame.drop(DIFF))
