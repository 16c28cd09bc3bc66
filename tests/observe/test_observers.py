"""Observers are told of each model's run, and never change what it comes to."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.core.profile import Phase, Profile, phase, profiling
from dbt_incremental_dd.runtime.observers import ModelRun, Observers
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome

REQUEST = ModelRequest("s.m", "s.m", "select 1", ModelConfig())


class Recorder:
    """An observer that writes down what it is told, and can fail."""

    def __init__(self, fails_at: str = "") -> None:
        self.told: list[str] = []
        self.models: list[ModelRun] = []
        self._fails_at = fails_at

    def model_began(self, model: ModelRun) -> None:
        self._note("began")

    def model_ended(self, model: ModelRun) -> None:
        self.models.append(model)
        self._note("failed" if model.error else "ended")

    def run_ended(self) -> None:
        self._note("run ended")

    def _note(self, what: str) -> None:
        self.told.append(what)
        if what == self._fails_at:
            raise OSError("no way")


def test_phases_are_noted_in_the_thread_that_asks() -> None:
    with phase("plan"):
        pass
    with profiling() as profile, pytest.raises(ValueError), phase("intake", "s.t") as noted:
        noted.rows = 3
        raise ValueError
    assert [(one.kind, one.subject, one.rows) for one in profile.stretches] == [("intake", "s.t", 3)]


def test_a_phase_that_comes_again_goes_on_and_an_intake_is_within_another() -> None:
    stretches = [Phase("intake", "s.t", 0.0, 0.5), Phase("inputs", "", 0.0, 1.0), Phase("inputs", "", 2.0, 0.25)]
    assert Profile(stretches).phases == {"inputs": 1.25}


@pytest.mark.parametrize("at", ["began", "ended", "run ended"])
def test_an_observer_that_fails_is_told_of_no_more(at: str) -> None:
    warned: list[str] = []
    failing, other = Recorder(at), Recorder()
    observers = Observers([failing, other], lambda who, text: warned.append(text))
    for _ in range(2):
        with observers.observed(REQUEST) as model:
            model.outcome = Outcome("s.m", "skip", 1)
    observers.run_ended()
    observers.run_ended()
    assert other.told == ["began", "ended", "began", "ended", "run ended"]
    assert failing.told == other.told[: other.told.index(at) + 1]
    assert warned == ["Recorder: OSError: no way. The run goes on without it."]


def test_an_interrupted_model_has_ended_too() -> None:
    recorder = Recorder()
    with pytest.raises(KeyboardInterrupt), Observers([recorder]).observed(REQUEST):
        raise KeyboardInterrupt
    (model,) = recorder.models
    assert isinstance(model.error, KeyboardInterrupt) and model.outcome is None and model.ended >= model.began
