"""Envelope ``snapshot``: the records are all that there is; changes are found by comparing with what is stored."""

from __future__ import annotations

from typing import ClassVar

from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.sources.envelopes.envelope import Change, Envelope, EnvelopeInput
from dbt_incremental_dd.sources.partitions import within
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import consolidate, updates


class Snapshot(Envelope):
    """New minus stored: both directions of EXCEPT ALL in one pass."""

    name: ClassVar[str] = "snapshot"
    is_whole: ClassVar[bool] = True
    takes_new_columns: ClassVar[bool] = True

    def apply(self, batch: EnvelopeInput) -> Change:
        fresh = batch.plus_minus()
        if not batch.result.whole or batch.log is None or not batch.log.files:
            return Change(fresh, batch.result.removed is None)
        schema = Schema((*batch.schema.columns, DIFF_COLUMN))
        stored = updates(batch.spark, batch.log.uri, batch.log.files, schema)
        if batch.result.within is not None:
            stored = stored.where(within(batch.result.within, schema))
        names = (f"`{name.replace('`', '``')}`" for name in batch.schema.names)
        stored = stored.selectExpr(*names, "-dd_diff AS dd_diff")
        estimate = fresh.estimate + total_rows(batch.log.files)
        return Change(batch.changed(consolidate(fresh.frame.unionByName(stored)), estimate), False)
