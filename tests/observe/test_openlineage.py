"""OpenLineage: where events go, and servers that fail."""

from __future__ import annotations

import io
import json
import random
import time
from pathlib import Path

import pytest
from openlineage.client.event_v2 import RunState

from dbt_incremental_dd.observe import background
from dbt_incremental_dd.observe.registry import observers_of
from tests.observe.lineage_spec import checked, events_of
from tests.observe.receiver import receiver
from tests.observe.telling import command, drive, noting, refused


def test_nothing_is_made_of_what_is_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as found:
        monkeypatch.setenv("OPENLINEAGE_URL", found.url)
        monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
        drive(observers_of(command(openlineage={"url": found.url}), refused))
        monkeypatch.delenv("OPENLINEAGE_URL")
        monkeypatch.delenv("OPENLINEAGE_DISABLED")
        drive(observers_of(command(openlineage={"namespace": "shop"}), refused))
        assert not found.bodies and background.background.cache_info().currsize == 0
        drive(observers_of(command(openlineage={"url": found.url, "namespace": "shop"}), refused), 1)
        assert [event.job.namespace for event in events_of(found)] == ["shop"] * 4


def test_the_client_s_own_file(tmp_path: Path) -> None:
    """Another transport, with the file in the current folder."""
    transport = f"{{type: file, log_file_path: {tmp_path}/events, append: true}}"
    (tmp_path / "openlineage.yml").write_text(f"transport: {transport}")
    drive(observers_of(command(), refused), 2)
    lines = (tmp_path / "events").read_text().splitlines()
    assert [checked(json.loads(line)).eventType for line in lines] == [
        RunState.START,
        *[RunState.START, RunState.COMPLETE] * 2,
        RunState.COMPLETE,
    ]


def test_a_parent_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    with receiver() as found:
        monkeypatch.setenv("OPENLINEAGE_PARENT_ID", "a/b")
        drive(observers_of(command(openlineage={"url": found.url}), noting(warned)), 1)
        assert events_of(found)[-1].eventType is RunState.COMPLETE
    assert len(warned) == 1 and "OPENLINEAGE_PARENT_ID is 'a/b'" in warned[0]


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr("dbt_incremental_dd.observe.extras.find_spec", lambda name: None)
    drive(observers_of(command(openlineage={"url": "http://127.0.0.1:1"}), noting(warned)), 1)
    assert len(warned) == 1 and "dbt-incremental-dd[openlineage]" in warned[0]


def test_a_command_without_models_is_not_told_of() -> None:
    with receiver() as found:
        assert drive(observers_of(command(openlineage={"url": found.url}), refused), 0) < 0.2
        assert not found.bodies


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_fails_now_and_then(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends in time; what was received is whole, and nothing comes twice or in another order."""
    rng, warned = random.Random(seed), list[str]()
    monkeypatch.setattr(background, "WAIT_SECONDS", 5.0)

    def answer() -> int:
        time.sleep(rng.choice([0, 0, 0, 0.02]))
        return rng.choice([200, 201, 400, 404])

    with receiver(answer) as found:
        assert drive(observers_of(command(openlineage={"url": found.url}), noting(warned))) < 5.5
        received = events_of(found)
    assert 0 < len(received) < 42 and len(warned) == 1
    told = [(event.run.runId, event.eventType) for event in received]
    assert len(set(told)) == len(told)
    times = [event.eventTime for event in received]
    assert times == sorted(times)


@pytest.mark.parametrize("kind", ["refuses", "hangs", "drops"])
def test_a_server_that_is_not_there(kind: str, monkeypatch: pytest.MonkeyPatch, logged: io.StringIO) -> None:
    """The first run waits a while, and the next ones do not wait at all."""
    monkeypatch.setattr(background, "WAIT_SECONDS", 0.5)
    warned: list[str] = []
    with receiver(lambda: time.sleep(30) or 200 if kind == "hangs" else 0) as found:
        url = "http://127.0.0.1:1" if kind == "refuses" else found.url
        assert drive(observers_of(command(openlineage={"url": url}), noting(warned)), 3) < 1.0
        assert drive(observers_of(command(openlineage={"url": url}), noting(warned)), 3) < 0.2
    assert len(warned) == 2 and not found.bodies and not logged.getvalue()
