"""One run: brings models up to date, at one time."""

from __future__ import annotations

from dataclasses import replace

from dbt_incremental_dd.core.time import Time, now
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
        runs_kept: int = 0,
        observers: Observers | None = None,
    ) -> None:
        super().__init__(session, storage, invocation, target_time, report, runs_kept)
        self._observers = observers or Observers()

    def model(self, request: ModelRequest) -> Outcome:
        """Brings one model up to date, and notes how."""
        began = now()
        with self._observers.observed(request) as model:
            try:
                outcome = model.outcome = replace(run_model(self, model), profile=model.profile)
            except Exception as error:
                if self.run_log is not None:
                    self.run_log.failed(request.name, began, model.profile, error)
                raise
        if self.run_log is not None:
            self.run_log.succeeded(began, outcome)
        return outcome

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self._observers.run_ended()
