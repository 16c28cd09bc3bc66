"""One run: brings models up to date, at one time."""

from __future__ import annotations

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.model import run_model
from dbt_incremental_dd.runtime.observers import Observers
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome, Report
from dbt_incremental_dd.runtime.run_context import RunContext
from dbt_incremental_dd.trace.layout import Storage


class Run(RunContext):
    """One invocation. Its methods may be called from several threads. ``observers`` are told of its models."""

    def __init__(
        self,
        session: LazySession,
        storage: Storage,
        invocation: str,
        target_time: Time | None,
        report: Report,
        observers: Observers | None = None,
    ) -> None:
        super().__init__(session, storage, invocation, target_time, report)
        self._observers = observers or Observers()

    def model(self, request: ModelRequest) -> Outcome:
        """Brings one model up to date."""
        with self._observers.observed(request) as model:
            return run_model(self, model)

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self._observers.run_ended()
