"""One intake of one source: what envelopes need to know, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sources.arrival import CORRUPT, FILE, Arrival
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.read import consolidate, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Change:
    """The collection's updates: stored columns and ``dd_diff``, consolidated. ``finish`` runs before the commit."""

    updates: DataFrame
    estimate: int
    inserts_only: bool
    notes: tuple[str, ...] = ()
    finish: Callable[[], dict[str, int]] = dict


@dataclass(frozen=True)
class Taking:
    """``records`` are the good ones; ``log`` is None at the first intake; ``inner``: versions of inner traces."""

    spark: SparkSession
    spec: SourceSpec
    place: Place
    log: Log | None
    schema: Schema
    arrival: Arrival
    records: DataFrame
    t: Time
    inner: dict[str, int] = field(default_factory=dict)

    def plus_minus(self) -> DataFrame:
        """The visible columns of new records with +1, and of removed ones with -1; what was only moved cancels."""
        names = self.schema.names
        updates = counted(self.records.select(*map(quoted, names)), 1)
        if self.arrival.removed is None:
            return updates
        return consolidate(updates.unionByName(counted(self.arrival.removed.select(*map(quoted, names)), -1)))


def counted(frame: DataFrame, diff: int) -> DataFrame:
    """The rows with that diff each."""
    return frame.withColumn(DIFF, F.lit(diff).cast("bigint"))


def record_names(frame: DataFrame) -> tuple[str, ...]:
    """The columns of records, without those that connectors add."""
    return tuple(name for name in frame.columns if name not in (FILE, CORRUPT))
