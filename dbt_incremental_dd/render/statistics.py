"""What the logs of a run's inputs tell of their rows."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from dbt_incremental_dd.render.context import InputInterval
from dbt_incremental_dd.trace.log import total_rows


class LogStatistics:
    """From files' rows and bounds; nothing is read. Updates count as rows, so that estimates are upper ones."""

    def __init__(self, inputs: Mapping[str, InputInterval]) -> None:
        self._inputs = inputs

    def rows(self, collection: str) -> int:
        """Stored updates."""
        log = self._inputs[collection].log
        return max(1, total_rows(log.files))

    def distinct(self, collection: str, column: str) -> int | None:
        """As many as lie between an integer's or a date's least and greatest value, and as there are rows."""
        log = self._inputs[collection].log
        bounds = [file.bounds.get(column) for file in log.files]
        known = [pair for pair in bounds if pair is not None]
        if not known or len(known) < len(bounds):
            return None
        low, high = min(pair[0] for pair in known), max(pair[1] for pair in known)
        between = (high - low).days if isinstance(low, datetime.date) else high - low if isinstance(low, int) else None
        return None if between is None else int(min(between + 1, total_rows(log.files)))
