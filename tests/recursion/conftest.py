"""Claims of relations are looked at."""

from __future__ import annotations

import pytest

from tests.claims import claims as claims
from tests.oracle import World


@pytest.fixture(autouse=True)
def relations_are_read_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every test of this folder, which are of what is stored."""
    monkeypatch.setattr(World, "shown_each", 3)
