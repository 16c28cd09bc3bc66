"""Envelope ``snapshot``: the records are all that there is; changes are found by comparing with what is stored."""

from __future__ import annotations

from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.sources.envelopes.envelope import Change, Taking
from dbt_incremental_dd.sources.partitions import within
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import consolidate, updates


def change(taking: Taking) -> Change:
    """New minus stored: both directions of EXCEPT ALL in one pass."""
    fresh = taking.plus_minus()
    if not taking.arrival.whole or taking.log is None or not taking.log.files:
        return Change(fresh, taking.arrival.removed is None)
    schema = Schema((*taking.schema.columns, DIFF_COLUMN))
    stored = updates(taking.spark, taking.log.uri, taking.log.files, schema)
    if taking.arrival.within is not None:
        stored = stored.where(within(taking.arrival.within, schema))
    stored = stored.selectExpr(*(f"`{name.replace('`', '``')}`" for name in taking.schema.names), "-dd_diff AS dd_diff")
    estimate = fresh.estimate + total_rows(taking.log.files)
    return Change(taking.changed(consolidate(fresh.frame.unionByName(stored)), estimate), False)
