"""Envelope ``upsert``: a record replaces the row of its key, or deletes it.

Of several records for a key the latest counts, by ``order_by``; without it, by their place in the feed where it has an
order, else by the file's name, and within one file by the values, so that the outcome is always the same. What arrives
later wins unless ``order_by`` says it is older - also than a delete, whose position is kept as a tombstone.
"""

from __future__ import annotations

from typing import ClassVar

from dbt_incremental_dd.sources.envelopes import upsert_spark
from dbt_incremental_dd.sources.envelopes.envelope import KEY, Change, Envelope, EnvelopeInput, Requirement
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings


class Upsert(Envelope):
    """Each key's latest record against what is stored of the key."""

    name: ClassVar[str] = "upsert"
    is_keyed_by_feed: ClassVar[bool] = True
    requires: ClassVar[Requirement | None] = KEY

    def sort_key(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        return settings.key

    def apply(self, batch: EnvelopeInput) -> Change:
        """On the driver where records are few and Arrow orders them as Spark does, else in Spark."""
        return upsert_spark.change(batch)
