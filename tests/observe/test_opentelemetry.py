"""OpenTelemetry: where spans go, what they are a part of, and servers that fail."""

from __future__ import annotations

import io
import random
import time

import pytest
from opentelemetry.sdk.trace import TracerProvider

from dbt_incremental_dd.observe import background
from dbt_incremental_dd.observe.registry import observers_of
from tests.observe.receiver import receiver
from tests.observe.telling import command, drive, noting, refused
from tests.observe.traces import spans_of


def test_nothing_is_made_of_what_is_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as found:
        drive(observers_of(command(opentelemetry={"service_name": "shop"}), refused))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        for name, value in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")]:
            monkeypatch.setenv(name, value)
            drive(observers_of(command(opentelemetry={"endpoint": found.url}), refused))
            monkeypatch.delenv(name)
        assert not found.bodies and background.background.cache_info().currsize == 0


def test_the_profile_says_where_to_and_as_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says goes before the environment; without TRACEPARENT the command begins a trace."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "other")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    with receiver() as found:
        settings = {"endpoint": f"{found.url}/", "service_name": "shop"}
        drive(observers_of(command(opentelemetry=settings), refused), 2)
    spans = spans_of(found.bodies)
    assert [span.name for span in spans] == ["plan", "model s.m0", "plan", "model s.m1", "dbt run"]
    assert spans[-1].parent == "" and {span.trace for span in spans} == {spans[-1].trace}
    assert {span.resource["service.name"] for span in spans} == {"shop"}
    assert {span.resource["deployment.environment.name"] for span in spans} == {"test"}


def test_a_span_in_which_dbt_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("caller")
    with receiver() as found, tracer.start_as_current_span("calls") as span:
        drive(observers_of(command(opentelemetry={"endpoint": found.url}), refused), 1)
    assert spans_of(found.bodies)[-1].parent == f"{span.get_span_context().span_id:016x}"


def test_a_trace_that_is_not_sampled_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
    with receiver() as found:
        drive(observers_of(command(opentelemetry={"endpoint": found.url}), refused), 2)
        assert not found.bodies


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "no exporter of spans called zipkin is installed"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_PROTOCOL is 'http/json'"),
    ],
)
def test_an_exporter_that_is_none(monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str) -> None:
    warned: list[str] = []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv(name, value)
    drive(observers_of(command(), noting(warned)), 2)
    assert len(warned) == 1 and told in warned[0]


def test_a_command_without_models_is_not_told_of() -> None:
    with receiver() as found:
        assert drive(observers_of(command(opentelemetry={"endpoint": found.url}), refused), 0) < 0.2
        assert not found.bodies


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_fails_now_and_then(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends in time, and no span comes twice."""
    rng, warned = random.Random(seed), list[str]()
    monkeypatch.setattr(background, "WAIT_SECONDS", 5.0)

    def answer() -> int:
        time.sleep(rng.choice([0, 0, 0, 0.02]))
        return rng.choice([200, 400, 404])

    with receiver(answer) as found:
        assert drive(observers_of(command(opentelemetry={"endpoint": found.url}), noting(warned))) < 5.5
    ids = [span.id for span in spans_of(found.bodies)]
    assert 0 < len(ids) < 41 and len(set(ids)) == len(ids)
    assert len(warned) == 1 and "has not taken the spans: " in warned[0] and "code: 40" in warned[0]


@pytest.mark.parametrize("kind", ["refuses", "hangs", "drops"])
def test_a_server_that_is_not_there(kind: str, monkeypatch: pytest.MonkeyPatch, logged: io.StringIO) -> None:
    """The first run waits a while, and the next ones do not wait at all."""
    monkeypatch.setattr(background, "WAIT_SECONDS", 0.5)
    warned: list[str] = []
    with receiver(lambda: time.sleep(30) or 200 if kind == "hangs" else 0) as found:
        url = "http://127.0.0.1:1" if kind == "refuses" else found.url
        assert drive(observers_of(command(opentelemetry={"endpoint": url}), noting(warned)), 3) < 1.0
        assert drive(observers_of(command(opentelemetry={"endpoint": url}), noting(warned)), 3) < 0.2
    assert len(warned) == 2 and not found.bodies and not logged.getvalue()
