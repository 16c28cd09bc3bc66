"""Which rows a table has on which day: how many come, which change, and which go.

A row that came on day ``b`` changes or goes on a later day with the shares that the schedule says, each by a lot of its
own. So no day needs to know of another one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.tpcdi.chance import Chance, Longs


@dataclass(frozen=True)
class Shares:
    """Of a table's first rows that come, change and go in a day."""

    inserts: float
    updates: float
    deletes: float


@dataclass(frozen=True)
class Lifetime:
    """The rows of one table, by number. Day 0 has the first ``initial``; those of later days follow."""

    chance: Chance
    initial: int
    shares: Shares

    def count(self, day: int) -> int:
        """How many have come up to a day's end."""
        return self.initial + day * self._new

    @property
    def _new(self) -> int:
        return round(self.initial * self.shares.inserts)

    def inserted(self, day: int) -> Longs:
        """Those that come on a day."""
        return np.arange(self.count(day - 1) if day else 0, self.count(day), dtype=np.int64)

    def updated(self, day: int) -> Longs:
        """Those that change on a day, after the one that they came on."""
        rows = np.arange(self.count(day - 1), dtype=np.int64)
        drawn = self.chance.share(f"updated {day}", rows) < self.shares.updates
        return rows[drawn & (self._gone_on(rows) > day)]

    def deleted(self, day: int) -> Longs:
        """Those that go on a day."""
        rows = np.arange(self.count(day - 1), dtype=np.int64)
        return rows[self._gone_on(rows) == day]

    def alive(self, day: int) -> Longs:
        """Those that are there at a day's end."""
        rows = np.arange(self.count(day), dtype=np.int64)
        return rows[self._gone_on(rows) > day]

    def came_on(self, rows: Longs) -> Longs:
        """The day on which they came."""
        later = (rows - self.initial) // max(self._new, 1) + 1
        return np.where(rows < self.initial, 0, later)

    def version(self, rows: Longs, day: int) -> Longs:
        """How often each has changed up to a day's end."""
        found = np.zeros(len(rows), np.int64)
        for one in range(1, day + 1):
            there = (self.came_on(rows) < one) & (self._gone_on(rows) > one)
            found += there & (self.chance.share(f"updated {one}", rows) < self.shares.updates)
        return found

    def _gone_on(self, rows: Longs) -> Longs:
        """The day on which they go; far away for those that stay."""
        if not self.shares.deletes:
            return np.full(len(rows), np.iinfo(np.int64).max)
        lots = self.chance.share("gone", rows)
        left = np.log1p(-lots) / np.log1p(-self.shares.deletes)
        return self.came_on(rows) + 1 + left.astype(np.int64)
