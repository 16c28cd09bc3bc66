"""One client's SELECTs over collections. A statement reads everything as of one time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.query.engine import QueryEngine, QueryResult
from dbt_incremental_dd.untrusted.limits import StatementRun


class Session:
    """Runs one statement at a time; ``interrupt`` may be called from another thread."""

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._run: StatementRun | None = None
        self.seconds: float | None = None
        """Time limit for computing a statement, within the engine's own limit."""

    def interrupt(self) -> None:
        """Interrupts the statement begun last, which then raises QueryCanceled. No effect if it has ended."""
        if self._run is not None:
            self._run.interrupt()

    def select(self, sql: str, parameters: Sequence[Any] = (), as_of: Time | None = None) -> QueryResult:
        """Runs a SELECT as of ``as_of``, or of its own AS OF clause, or of the latest time that is final in all
        collections that it reads.

        Raises QueryError if it is not read-only or DuckDB rejects it, QueryCanceled if it is interrupted or exceeds its
        time limit, FrontierError if a collection is not readable at that time.
        """
        self._run = self._engine.new_run(self.seconds)
        return self._engine.select(sql, parameters, as_of, self._run)

    def new_run(self) -> StatementRun:
        """A run of one statement within the session's time limit."""
        return self._engine.new_run(self.seconds)

    def collections_of(self, sql: str) -> tuple[str, ...]:
        """The collections that a SELECT reads. Raises QueryError unless it is one read-only SELECT."""
        return self._engine.collections_of(sql)
