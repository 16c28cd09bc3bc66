"""Who is told of a run's models: lineage, traces, a log of runs. Nobody, unless something is configured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from dbt_incremental_dd.core.profile import Profile, profiling
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.runtime.request import ModelRequest, Outcome
from dbt_incremental_dd.runtime.strategy import InputSnapshot


@dataclass
class ModelRun:
    """One model's run, as far as it has come. ``began`` and ``ended``: seconds since the epoch.

    ``profile``: what takes the time. ``inputs``: None until they are resolved; ``schema`` (the output's columns) and
    ``plan`` until they are known. A run in which nothing has changed makes no plan. Either ``outcome`` or ``error`` is
    there once it has ended.
    """

    request: ModelRequest
    profile: Profile
    began: float = field(default_factory=time.time)
    ended: float = 0.0
    inputs: tuple[InputSnapshot, ...] | None = None
    schema: Schema | None = None
    plan: DifferentialPlan | None = None
    outcome: Outcome | None = None
    error: BaseException | None = None


class Observer(Protocol):
    """Is told of one run, and made as it begins. Its models run in several threads, each in one.

    It returns at once, and keeps nothing of a model beyond its end but what it still has to send.
    """

    def model_began(self, model: ModelRun) -> None:
        """The model's run begins: only ``request`` and ``began`` are known."""

    def model_ended(self, model: ModelRun) -> None:
        """The model's run has ended, well or not."""

    def run_ended(self) -> None:
        """The run has ended. What is still to be sent is waited for here, some seconds at most."""


Warn = Callable[[str, str], object]
"""Warns the user of an observer: its name, and what is wrong."""


class Observers:
    """Those of one run. One that fails is told of no more, of which the user is warned; the run goes on."""

    def __init__(self, observers: Sequence[Observer] = (), warn: Warn = lambda who, text: None) -> None:
        self._observers = list(observers)
        self._warn = warn

    @contextmanager
    def observed(self, request: ModelRequest) -> Iterator[ModelRun]:
        """The model's run is what goes on inside, and leaves its outcome in what it is given."""
        with profiling() as profile:
            model = ModelRun(request, profile)
            self._tell("model_began", model)
            try:
                yield model
            except BaseException as error:
                model.error = error
                raise
            finally:
                model.ended = time.time()
                self._tell("model_ended", model)

    def run_ended(self) -> None:
        """Tells all of them, once."""
        self._tell("run_ended")
        self._observers = []

    def _tell(self, what: str, *given: ModelRun) -> None:
        for observer in tuple(self._observers):
            try:
                getattr(observer, what)(*given)
            except Exception as error:
                self._observers = [one for one in self._observers if one is not observer]
                who = type(observer).__name__
                self._warn(who, f"{who}: {type(error).__name__}: {error}. The run goes on without it.")
