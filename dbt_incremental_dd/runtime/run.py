"""One run: brings models up to date, at one time."""

from __future__ import annotations

from dataclasses import replace

from dbt_incremental_dd.core.profile import profiling
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.runtime.model import run_model
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome
from dbt_incremental_dd.runtime.run_context import RunContext


class Run(RunContext):
    """One invocation. Its methods may be called from several threads."""

    def model(self, request: ModelRequest) -> Outcome:
        """Brings one model up to date, and notes how."""
        began = now()
        with profiling() as profile:
            try:
                outcome = replace(run_model(self, request), profile=profile)
            except Exception as error:
                if self.run_log is not None:
                    self.run_log.failed(request.name, began, profile, error)
                raise
        if self.run_log is not None:
            self.run_log.succeeded(began, outcome)
        return outcome
