"""Observers that are told of models which nobody runs."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from dbt_incremental_dd.core.profile import phase
from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.runtime.observers import Observers, Warn
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome
from dbt_incremental_dd.trace.layout import Storage


def command(**settings: dict[str, str]) -> Command:
    """``settings``: by observer."""
    return Command(str(uuid4()), "run", "p", time.time(), Storage("/state"), settings=settings)


def drive(observers: Observers, models: int = 20) -> float:
    """Tells them of models; the seconds that the end has taken."""
    for number in range(models):
        with observers.observed(ModelRequest(f"s.m{number}", "m", "select 1 as x", ModelConfig())) as model:
            with phase("plan"):
                pass
            model.inputs, model.outcome = (), Outcome(f"s.m{number}", "skip", 1)
    started = time.monotonic()
    observers.run_ended()
    return time.monotonic() - started


def noting(warned: list[str]) -> Warn:
    """Keeps warnings."""
    return lambda who, text: warned.append(text)


def refused(who: str, text: str) -> Any:
    """There is nothing to warn of."""
    raise AssertionError(text)
