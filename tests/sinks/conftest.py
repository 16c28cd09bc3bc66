"""A receiver for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sinks.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """It takes all changes."""
    made = Receiver()
    yield made
    made.server.shutdown()
