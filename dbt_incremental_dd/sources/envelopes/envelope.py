"""One intake of one source: what envelopes need to know, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.poll_result import ADDED, Arrival
from dbt_incremental_dd.trace.arrow import is_plain
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.local import Local, consolidate_local
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.read import consolidate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POSITION = "dd_position"
"""STRUCT, hidden: the place of a row's last change in the order of changes; NULL where there is no order."""


@dataclass(frozen=True)
class Change:
    """The collection's updates: stored columns and ``dd_diff``, consolidated. ``finish`` runs before the commit."""

    updates: Records
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
    records: Records
    t: Time
    inner: dict[str, int] = field(default_factory=dict)

    def changed(self, frame: DataFrame, estimate: int | None = None) -> Records:
        """Updates that Spark computes; by default at most as many as there are records."""
        return Records(self.spark, frame, self.records.estimate if estimate is None else estimate)

    def driver_side(self, table: pa.Table, schema: Schema) -> Records:
        """Updates that are on the driver."""
        return Records(self.spark, Local(self.spark, table, schema))

    def plus_minus(self) -> Records:
        """The visible columns of new records with +1, and of removed ones with -1; what was only moved cancels."""
        names = self.schema.names
        updates = self.records.select(names).counted(1)
        if self.arrival.removed is None:
            return updates
        removed = self.arrival.removed
        gone = (removed if isinstance(removed, Records) else Records(self.spark, removed)).select(names).counted(-1)
        if updates.local is not None and gone.local is not None and is_plain(self.schema):
            return updates.replaced(consolidate_local(pa.concat_tables([updates.local, gone.local]), [DIFF]))
        return self.changed(consolidate(updates.frame.unionByName(gone.frame)), updates.estimate + gone.estimate)


def refuse_null_keys(spec: SourceSpec, counts: Mapping[str, int]) -> None:
    """Raises SourceError where a key column is NULL in any record; ``counts``: in how many, by column."""
    for name, count in counts.items():
        if count:
            where = f" at {spec.path}" if spec.path else ""
            raise SourceError(
                f"source {spec.name}: key column {name} is NULL in {count} new record(s){where}",
                f"Every record of an upsert needs its key, in a field called {name}. Correct the feed, or choose "
                "another key.",
            )


def record_names(records: Records) -> tuple[str, ...]:
    """The columns of records, without those that connectors add."""
    return tuple(name for name in records.schema.names if name not in ADDED)
