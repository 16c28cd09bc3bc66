"""How many rows each table has at a scale factor, and which days there are."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

FIRST_DAY, LAST_DAY = datetime.date(2012, 7, 8), datetime.date(2017, 7, 7)
"""Of the historical load; the batches of later days follow, one a day."""
HISTORY = (LAST_DAY - FIRST_DAY).days + 1
"""Days."""


@dataclass(frozen=True)
class Sizes:
    """Rows of the historical load."""

    scale: float

    def _of(self, each: float) -> int:
        return max(round(each * self.scale), 10)

    @property
    def companies(self) -> int:
        return self._of(250)

    @property
    def securities(self) -> int:
        return self._of(420)

    @property
    def employees(self) -> int:
        return self._of(5_000)

    @property
    def customers(self) -> int:
        return self._of(1_500)

    @property
    def accounts(self) -> int:
        return self._of(3_000)

    @property
    def prospects(self) -> int:
        return self._of(5_000)

    @property
    def trades(self) -> int:
        return self._of(130_000)

    @property
    def cash_transactions(self) -> int:
        return self._of(119_000)

    @property
    def watches(self) -> int:
        return self._of(150_000)


def date_of(day: int) -> datetime.date:
    """The date of a batch; 0 is the historical load's."""
    return LAST_DAY + datetime.timedelta(day)
