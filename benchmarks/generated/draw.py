"""Random choices, and the pieces of SQL that they are made for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
FIRST_YEAR, LAST_YEAR = 1993, 1997
"""The years of which TPC-H has all orders and lines."""


class Draw:
    """Choices from one source of chance: the same seed makes the same ones."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)

    def one(self, choices: Sequence[T]) -> T:
        """One of them."""
        return self._rng.choice(choices)

    def some(self, choices: Sequence[T], least: int, most: int) -> list[T]:
        """Between so many of them, each at most once."""
        return self._rng.sample(choices, min(self.number(least, most), len(choices)))

    def number(self, low: int, high: int) -> int:
        """A number, both bounds included."""
        return self._rng.randint(low, high)

    def maybe(self, probability: float = 0.5) -> bool:
        """True as often as that."""
        return self._rng.random() < probability

    def words(self, choices: Sequence[str], least: int, most: int) -> str:
        """String literals with commas between them."""
        return ", ".join(f"'{word}'" for word in sorted(self.some(choices, least, most)))

    def year(self, before_last: int = 0) -> int:
        """A whole year, with at least so many whole ones after it."""
        return self.number(FIRST_YEAR, LAST_YEAR - before_last)

    def limit(self) -> int:
        """A number of rows that a page shows."""
        return self.one((10, 20, 50, 100, 100, 500))

    def in_year(self, date: str, year: int) -> str:
        """The condition that a date is in a year."""
        return self.one(
            (
                f"year({date}) = {year}",
                f"extract(YEAR FROM {date}) = {year}",
                f"{date} BETWEEN DATE '{year}-01-01' AND DATE '{year}-12-31'",
                f"{date} >= DATE '{year}-01-01' AND {date} < DATE '{year}-01-01' + INTERVAL 1 YEAR",
                f"date_trunc('YEAR', {date}) = TIMESTAMP '{year}-01-01 00:00:00'",
            )
        )

    def in_period(self, date: str) -> str:
        """The condition that a date is in some period of one to several years."""
        year = self.year(1)
        month = self.number(1, 12)
        return self.one(
            (
                self.in_year(date, year),
                f"year({date}) BETWEEN {year} AND {year + 1}",
                f"{date} >= DATE '{year}-{month:02d}-01' AND {date} < add_months(DATE '{year}-{month:02d}-01', 18)",
                f"{date} > DATE '{year + 1}-{month:02d}-28' - INTERVAL '400' DAY"
                f" AND {date} <= DATE '{year + 1}-{month:02d}-28'",
                f"year({date}) IN ({year}, {LAST_YEAR})",
            )
        )
