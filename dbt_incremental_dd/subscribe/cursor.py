"""A cursor over a subscription: rows are fetched by number, as in Materialize."""

from __future__ import annotations

import time as clock
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.subscribe.json_values import python_rows
from dbt_incremental_dd.subscribe.shape import STATE
from dbt_incremental_dd.subscribe.subscription import Batch, Subscription


@dataclass(frozen=True)
class Row:
    """One update, with its diff or the state of its key; or, if ``progressed``, only the statement that no more updates
    come below ``timestamp`` (ms)."""

    timestamp: Time
    progressed: bool
    diff: int | None
    values: dict[str, Any] | None
    state: str | None = None


class Cursor:
    """With ``progress``, each advance of the frontier is a row as well."""

    def __init__(self, subscription: Subscription, *, progress: bool = False) -> None:
        self._subscription = subscription
        self._progress = progress
        self._pending: deque[Row] = deque()

    def fetch(self, count: int | None = None, timeout: float | None = 0) -> list[Row]:
        """At most ``count`` rows (default: all available ones). Waits for at least one, up to ``timeout`` seconds
        (None: no limit), unless the subscription has ended."""
        deadline = None if timeout is None else clock.monotonic() + timeout
        while not self._pending:
            left = None if deadline is None else max(deadline - clock.monotonic(), 0)
            batch = self._subscription.wait(left)
            if batch is None:
                return []
            self._pending.extend(self._rows(batch))
        while (count is None or len(self._pending) < count) and (batch := self._subscription.poll()) is not None:
            self._pending.extend(self._rows(batch))
        number = len(self._pending) if count is None else min(count, len(self._pending))
        return [self._pending.popleft() for _ in range(number)]

    def _rows(self, batch: Batch) -> Iterator[Row]:
        for row in python_rows(batch.updates):
            t, diff, state = row.pop(TIME), row.pop(DIFF, None), row.pop(STATE, None)
            yield Row(t, False, diff, row, state)
        if self._progress:
            yield Row(batch.upper, True, None, None)
