"""Envelope ``append``: every record is a row that is there from now on."""

from __future__ import annotations

from typing import ClassVar

from dbt_incremental_dd.sources.envelopes.envelope import Change, Envelope, EnvelopeInput
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings


class Append(Envelope):
    """Each record +1; records that the connector says are gone, -1."""

    name: ClassVar[str] = "append"
    takes_new_columns: ClassVar[bool] = True

    def takes_pieces(self, settings: EnvelopeSettings) -> bool:
        return True

    def apply(self, batch: EnvelopeInput) -> Change:
        return Change(batch.plus_minus())
