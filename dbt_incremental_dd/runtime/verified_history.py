"""Verification of a history: its open intervals against the query's rows, and its intervals against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.history.stored import is_gone, is_open
from dbt_incremental_dd.runtime.comparison import Verification, compared
from dbt_incremental_dd.trace.spark_reader import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def verified_history(
    history: History, query: Schema, name: str, t: Time, answer: DataFrame, stored: DataFrame, seconds: float
) -> Verification:
    """Compares the query's rows with those that have an open interval: all of their columns where these have to be the
    same, else their keys, of which some may have gone long ago where nothing is closed. Intervals of a key that overlap
    are unexpected rows."""
    bound = history.bound(query, name)
    columns = [quoted(column) for column in (query.names if history.is_of_rows else bound.key)]
    is_there = F.expr(f"{is_open(history)} AND NOT {is_gone(history)}")
    found = compared(name, t, answer.select(columns), stored.where(is_there).select(*columns, DIFF), seconds)
    kept = 0 if history.deletes == "keep" else found.unexpected
    return replace(found, unexpected=kept + overlapping(bound, stored))


def overlapping(history: History, stored: DataFrame) -> int:
    """How many intervals end before they begin, or after the next one of their key has begun."""
    begins, ends = (quoted(history.names[role]) for role in ("from", "to"))
    rows = stored.withColumn("dd_next", F.lit(None).cast("timestamp"))
    if history.key:
        versions = Window.partitionBy(*map(quoted, history.key)).orderBy(begins, ends)
        rows = stored.withColumn("dd_next", F.lead(begins).over(versions))
    through = F.when(F.expr(is_open(history)), F.lit(None)).otherwise(ends)
    goes_on = F.col("dd_next").isNotNull() & (through.isNull() | (through > F.col("dd_next")))
    return rows.where((through <= begins) | goes_on).count()
