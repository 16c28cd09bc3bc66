"""A command that a task of Airflow starts is told of the task's span."""

from __future__ import annotations

import sys

from opentelemetry.sdk.trace import TracerProvider

from airflow_differential.command import Command

_SAYS = [sys.executable, "-c", "import os; print(os.environ.get('TRACEPARENT'))"]


def said(environment: dict[str, str]) -> str:
    lines: list[str] = []
    Command(_SAYS, environment).run(lines.append)
    return lines[-1]


def test_the_task_s_span_is_passed_on() -> None:
    with TracerProvider(shutdown_on_exit=False).get_tracer("task").start_as_current_span("task") as span:
        context = span.get_span_context()
        assert said({}).rsplit("-", 1)[0] == f"00-{context.trace_id:032x}-{context.span_id:016x}"
        assert said({"TRACEPARENT": "mine"}) == "mine"
    assert said({}) == "None"
