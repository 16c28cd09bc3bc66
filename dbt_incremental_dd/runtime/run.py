"""One run: brings models up to date, at one time."""

from __future__ import annotations

from dbt_incremental_dd.runtime.model import run_model
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome
from dbt_incremental_dd.runtime.run_context import RunContext


class Run(RunContext):
    """One invocation. Its methods may be called from several threads."""

    def model(self, request: ModelRequest) -> Outcome:
        """Brings one model up to date."""
        return run_model(self, request)
