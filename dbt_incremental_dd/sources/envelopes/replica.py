"""Envelope ``replica``: the records are what happened to a table's rows, as the table's own database tells it.

With a key, a record is its key's row from now on, or takes it away. Without one, it is one row more, or one less. Where
the records are all that there is, the stored rows go that are not among them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import DIFF_COLUMN, Schema
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import read, with_keys
from dbt_incremental_dd.sources.envelopes.envelope import Change, Envelope, EnvelopeInput, net
from dbt_incremental_dd.sources.envelopes.position import POSITION, EventPosition
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.envelopes.upsert import upserted
from dbt_incremental_dd.sources.records import GONE, KEPT, WAS, localized, some, taken_rows
from dbt_incremental_dd.trace.spark_reader import quote_name

_NOWHERE = EventPosition()
"""The log itself is in order. A position is stored so that a table may come to have a key, or lose it."""
_OLD, _KEY = "dd_old", "dd_key"


class Replica(Envelope):
    """What happened to a table's rows."""

    name: ClassVar[str] = "replica"
    is_implied: ClassVar[bool] = True

    def sort_key(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        return settings.key

    def apply(self, batch: EnvelopeInput) -> Change:
        names = batch.schema.names
        is_first = batch.log is None or not batch.log.files
        if batch.settings.key and KEPT in batch.records.names:
            batch = replace(batch, records=_completed(batch))
        if batch.settings.key and (is_first or not batch.result.whole):
            return upserted(batch)
        rows = upserted(replace(batch, log=None)).updates.columns(names) if batch.settings.key else _counted(batch)
        if batch.result.whole and batch.log is not None and not is_first:
            most = taken_rows(batch.workspace) if rows.is_local else 0
            schema = Schema((*batch.schema, DIFF_COLUMN))
            rows = net(rows, read(batch.workspace, batch.log.uri, batch.log.files, schema, most=most))
        return Change(_NOWHERE.packed(rows).columns([*names, POSITION]))


def _counted(batch: EnvelopeInput) -> Relation:
    """Rows that came with +1, those that went with -1, summed up."""
    records = localized(batch.records)
    diff = Expr(f"CASE WHEN {GONE} THEN -1L ELSE 1L END" if GONE in records.names else "1L")
    return records.with_diff(diff).columns(batch.schema.names).consolidate()


def _completed(batch: EnvelopeInput) -> Relation:
    """The records with the values that they have from stored rows. Raises SourceError where such a row is missing."""
    records, key, names = localized(batch.records), batch.settings.key, batch.schema.names
    others = [name for name in records.names if name not in (KEPT, WAS, DIFF_COLUMN.name)]
    wanted = records.filter(Expr(f"{KEPT} IS NOT NULL"))
    if batch.result.whole or batch.log is None or wanted.is_empty:
        return records.columns(others)
    was = tuple(f"{_KEY}_{place}" for place in range(len(key)))
    old = {name: f"{_OLD}_{place}" for place, name in enumerate(names)}
    records = records.unpack(WAS, was)
    keys = keys_of(wanted.unpack(WAS, was).select(list(zip(key, was, strict=True))), key)
    stored = with_keys(batch.workspace, batch.log, Schema((*batch.schema, DIFF_COLUMN)), keys).consolidate()
    stored = stored.select([*zip(was, key, strict=True), *((own, name) for name, own in old.items())])
    stored = stored.extend([(_OLD, Expr("TRUE"))])
    beside = localized(records.lookup(stored, was, [(_OLD, _OLD), *((own, own) for own in old.values())]))
    lost = some(beside.filter(Expr(f"{KEPT} IS NOT NULL AND {_OLD} IS NULL")), 1)
    if lost is None or lost.num_rows:
        raise SourceError(
            f"source {batch.name}: a row that the log goes on from is not stored",
            "Remove the source's folder under state_root to take it in anew.",
        )
    kept = {
        name: f"CASE WHEN {KEPT} LIKE '%,{place},%' THEN {old[name]} ELSE {quote_name(name)} END"
        for place, name in enumerate(names)
    }
    return beside.map([(name, Expr(kept.get(name, quote_name(name)))) for name in others])


REPLICA: Envelope = Replica()
