"""Envelope ``snapshot``: the records are all that there is; changes are found by comparing with what is stored."""

from __future__ import annotations

from typing import ClassVar

from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.sources.envelopes.envelope import Change, Envelope, EnvelopeInput, net
from dbt_incremental_dd.sources.partitions import bounded_values, partition_columns, partition_rows
from dbt_incremental_dd.sources.records import taken_rows
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.log import Log


class Snapshot(Envelope):
    """New minus stored: both directions of EXCEPT ALL in one pass."""

    name: ClassVar[str] = "snapshot"
    is_whole: ClassVar[bool] = True
    takes_new_columns: ClassVar[bool] = True

    def apply(self, batch: EnvelopeInput) -> Change:
        new = batch.plus_minus()
        if not batch.result.whole or batch.log is None or not batch.log.files:
            return Change(new)
        return Change(net(new, stored_rows(batch, batch.log, most=taken_rows(batch.workspace) if new.is_local else 0)))


def stored_rows(batch: EnvelopeInput, log: Log, *, most: int) -> Relation:
    """The stored rows that the records are all of: at most so many are read on the driver."""
    schema, partitions = Schema((*batch.schema, DIFF_COLUMN)), batch.result.within
    if partitions is None:
        return read(batch.workspace, log.uri, log.files, schema, most=most)
    values = bounded_values(partitions, schema)
    rows = read(batch.workspace, log.uri, matching(log.files, values), schema, most=most, values=values)
    names = partition_columns(partitions)
    keys = Relation.of(batch.workspace, partition_rows(partitions, schema), schema.select(names))
    return rows.restrict(keys, names)
