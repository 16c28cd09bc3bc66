"""Observers are told of each model's run, and never change what it comes to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import DifferentialError, UnsupportedSQL
from dbt_incremental_dd.core.phases import noting, phase
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.observers import ModelRun, Observers
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest, Outcome
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    with noting() as phases, pytest.raises(ValueError), phase("intake", "s.t") as noted:
        noted.rows = 3
        raise ValueError
    assert [(one.kind, one.subject, one.rows) for one in phases] == [("intake", "s.t", 3)]


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


def test_a_run_tells_what_it_did(spark: SparkSession, tmp_path: Path) -> None:
    """An initial load, an unchanged run, a delta, and one that fails."""
    (tmp_path / "t").mkdir()
    columns = {"k": "int", "v": "int"}
    source = parse_source("ob.t", "ob.t", {"path": "t", "format": "csv", "envelope": "append"}, columns, str(tmp_path))
    spark.sql("CREATE SCHEMA IF NOT EXISTS ob")
    recorder, storage = Recorder(), Storage(str(tmp_path / "state"))

    def run(sql: str, rows: str) -> ModelRun:
        if rows:
            (tmp_path / "t" / f"{len(recorder.models)}.csv").write_text(rows)
        model = ModelRequest("ob.m", "ob.m", sql, ModelConfig(), {"ob.t": source})
        one = Run(LazySession.of(spark), storage, "run", None, lambda line: None, Observers([recorder]))
        try:
            one.model(model)
        finally:
            one.finish()
        return recorder.models[-1]

    sql = "select k, sum(v) as v from ob.t group by k"
    first = run(sql, "1,2\n1,3\n2,5\n")
    assert [one.kind for one in first.phases] == ["intake", "plan", "delta", "write", "commit", "publish", "compact"]
    assert first.phases[0].subject == "ob.t" and first.phases[0].rows == 3
    assert sum(one.seconds for one in first.phases) <= first.ended - first.began + 0.01
    assert first.outcome and first.outcome.strategy == "initial" and first.outcome.bytes_written > 0
    assert first.inputs and first.inputs[0].name == "ob.t" and first.schema and first.schema.names == ("k", "v")
    same = run(sql, "")
    assert same.outcome and same.outcome.strategy == "skip" and same.plan is None and same.schema == first.schema
    delta = run(sql, "2,6\n")
    assert delta.outcome and delta.outcome.strategy == "delta" and delta.phases[0].rows == 1
    with pytest.raises(UnsupportedSQL):
        run("select nowhere from ob.t", "")
    failed = recorder.models[-1]
    assert isinstance(failed.error, DifferentialError) and failed.outcome is None and failed.inputs
    assert recorder.told == ["began", "ended", "run ended"] * 3 + ["began", "failed", "run ended"]
