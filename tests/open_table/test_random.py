"""Random rounds of changes: after each, a foreign reader of the open table sees what the collection has."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dbt_incremental_dd.open_table.registry import FORMATS
from tests.open_table.readers import feed_by_delta_rs
from tests.open_table.written import Written

_RATIOS = (0.0, -0.0, float("nan"), None, 0.1)
_TIMES = (None, datetime(2024, 2, 29, 12, 0, 0, 123456, UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))


class Rounds:
    """Rows that change at random; many are equal to others. Now and then most go."""

    def __init__(self, written: Written, seed: int) -> None:
        self.written = written
        self.random = random.Random(seed)
        self.rows: list[tuple[Any, ...]] = []
        self.versions: dict[int, int] = {}
        """The number of the table's version at each time."""

    def step(self, t: int) -> None:
        """A change, and the table brought up to it."""
        self.change(t)
        kept = self.written.show()
        assert not kept.why
        self.versions[t] = kept.version.number

    def change(self, t: int) -> None:
        """Rows come and go at a time."""
        share = 0.9 if self.random.random() < 0.05 else 0.2
        went = self.random.sample(self.rows, self.random.randint(0, int(len(self.rows) * share)))
        for row in went:
            self.rows.remove(row)
        came = [self._row() for _ in range(self.random.randint(0, 12))]
        self.rows += came
        changes = [*((row, -1) for row in went), *Counter(came).items()]
        self.written.commit(changes, t)

    def _row(self) -> tuple[Any, ...]:
        pick = self.random.choice
        amounts = [None, Decimal("1.00"), Decimal("-2.50")]
        return pick([None, *range(8)]), pick([None, "ann", "ü'\"`", ""]), pick(amounts), pick(_RATIOS), pick(_TIMES)


@pytest.mark.parametrize("format", FORMATS)
def test_a_hundred_rounds(tmp_path: Path, format: str) -> None:
    written = Written(tmp_path, format)
    rounds = Rounds(written, 1)
    for t in range(1_000, 1_100):
        rounds.step(t)
        if format == "delta" or t % 3 == 0:  # PyIceberg takes longer
            assert written.shown() == written.as_of(t), t
    for t, number in list(rounds.versions.items())[::7]:
        assert written.shown(number) == written.as_of(t), t
    if format == "delta":
        _check_feed(rounds)


def _check_feed(rounds: Rounds) -> None:
    """What the feed says up to a version adds up to its rows."""
    written, running = rounds.written, Counter[tuple[Any, ...]]()
    feed = feed_by_delta_rs(written.uri, written.columns, 0)
    at = {number: t for t, number in rounds.versions.items()}
    for number in range(DeltaTable(written.uri).version() + 1):
        running.update(feed.get(number, {}))
        if number in at:
            assert +running == written.as_of(at[number]), number
