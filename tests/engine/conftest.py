"""Small files are merged as soon as there are two of a size, so that all tests meet it; claims of relations are
looked at, and relations are read at times."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.trace import tiers
from tests.claims import claims as claims
from tests.oracle import World


@pytest.fixture(autouse=True)
def merged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every test of this folder."""
    monkeypatch.setattr(tiers, "FAN", 2)


@pytest.fixture(autouse=True)
def relations_are_read_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every test of this folder, which are of what is stored."""
    monkeypatch.setattr(World, "shown_each", 3)
