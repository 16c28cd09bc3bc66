"""One client's SELECTs over collections. All that a statement reads, it reads as of one time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.query.engine import QueryEngine, QueryResult
from dbt_incremental_dd.untrusted.limits import StatementRun


class Session:
    """Costs nothing while nothing runs. For one statement at a time; ``interrupt`` may come from another thread."""

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._run: StatementRun | None = None
        self.seconds: float | None = None
        """For the computing of a statement, within the engine's own limit."""

    def interrupt(self) -> None:
        """Ends the statement that was begun last, with an error; one that has ended is left alone."""
        if self._run is not None:
            self._run.interrupt()

    def select(self, sql: str, parameters: Sequence[Any] = (), as_of: Time | None = None) -> QueryResult:
        """One SELECT, read as of ``as_of``, or what it says itself, or the latest time that is final in all it reads.

        Raises QueryError if it does anything but read collections, or DuckDB refuses it; QueryCanceled where it is
        interrupted or takes too long; FrontierError where a collection cannot be read at that time.
        """
        self._run = self._engine.new_run(self.seconds)
        return self._engine.select(sql, parameters, as_of, self._run)

    def collections_of(self, sql: str) -> tuple[str, ...]:
        """The collections that a SELECT names. Raises QueryError for anything but one SELECT that only reads."""
        return self._engine.collections_of(sql)
