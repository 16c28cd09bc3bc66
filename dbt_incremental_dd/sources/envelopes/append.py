"""Envelope ``append``: every record is a row that is there from now on."""

from __future__ import annotations

from dbt_incremental_dd.sources.envelopes.envelope import Change, Taking


def change(taking: Taking) -> Change:
    """Each record +1; records that the connector says are gone, -1."""
    return Change(taking.plus_minus(), taking.arrival.removed is None)
