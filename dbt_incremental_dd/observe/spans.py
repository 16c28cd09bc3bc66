"""The spans of a run: dbt's command, below it each model's run, and below that each of its phases.

What they have in common with other systems' is named by the semantic conventions
(https://opentelemetry.io/docs/specs/semconv/db), the rest begins with ``dd.``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.semconv.attributes.db_attributes import DB_COLLECTION_NAME, DB_NAMESPACE, DB_SYSTEM_NAME
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.semconv.attributes.exception_attributes import EXCEPTION_MESSAGE, EXCEPTION_TYPE
from opentelemetry.trace import Span, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dbt_incremental_dd.core.profile import Phase
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.observe.background import NotSent
from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.observe.library_logs import hear
from dbt_incremental_dd.runtime.observers import ModelRun
from dbt_incremental_dd.runtime.request import Outcome
from dbt_incremental_dd.version import version

SCOPE = "dbt_incremental_dd"
_SERVICE = "dbt-incremental-dd"
Attributes = Mapping[str, str | int | float | Sequence[str]]


class Spans:
    """Those of one command; asked for by one thread. ``context``: where it is called, which may have a span.
    ``service``: the service's name, or else the environment has it.

    Each method sends what has ended, and raises NotSent if an exporter has not taken it.
    """

    def __init__(self, command: Command, context: Context, exporters: Sequence[SpanExporter], service: str) -> None:
        self._exporters = exporters
        self._heard = hear("opentelemetry.exporter")
        self._ended = _Ended()
        provider = TracerProvider(resource=_resource(service), shutdown_on_exit=False)
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer(SCOPE, version)
        self._has_failed = False
        self._command = self._tracer.start_span(
            f"dbt {command.name}",
            context if get_current_span(context).get_span_context().is_valid else _of_environment(),
            attributes={
                "dd.command": command.name,
                "dd.project": command.project,
                "dd.invocation_id": command.id,
                "dd.state_root": command.storage.root,
            },
            start_time=_ns(command.began),
        )

    def model_ended(self, model: ModelRun) -> None:
        """The model's span, and those of its phases."""
        self._has_failed = self._has_failed or model.error is not None
        span = self._span(f"model {model.request.name}", self._command, model.began, _of_model(model))
        inputs = span
        for phase in reversed(model.profile.stretches):  # what is within another one ends before it
            name = f"{phase.kind} {phase.subject}".rstrip()
            child = self._span(name, inputs if phase.kind == "intake" else span, phase.began, dict(_of_phase(phase)))
            child.end(_ns(phase.began + phase.seconds))
            inputs = child if phase.kind == "inputs" else inputs
        if model.error is not None:
            _fail(span, model.error, model.ended)
        span.end(_ns(model.ended))
        self._send()

    def command_ended(self, at: float) -> None:
        """The command's span; the last one. ``at``: seconds since the epoch."""
        if self._has_failed:
            self._command.set_status(Status(StatusCode.ERROR, "a model has failed"))
        self._command.end(_ns(at))
        try:
            self._send()
        finally:
            for exporter in self._exporters:
                exporter.shutdown()

    def _span(self, name: str, parent: Span, began: float, attributes: Attributes) -> Span:
        context = set_span_in_context(parent)
        return self._tracer.start_span(name, context, attributes=attributes, start_time=_ns(began))

    def _send(self) -> None:
        spans = self._ended.take()
        if not spans:  # nothing was sampled
            return
        for exporter in self._exporters:
            if exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise NotSent(f"the collector has not taken the spans: {self._heard.last}")


class _Ended(SpanProcessor):
    """Keeps the sampled spans that have ended until they are taken."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """Those that have ended since it was last asked."""
        spans, self._spans = self._spans, []
        return spans


def _resource(service: str) -> Resource:
    """As the environment describes it (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES)."""
    found = Resource.create()
    is_named = not str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return found if is_named and not service else found.merge(Resource({SERVICE_NAME: service or _SERVICE}))


def _of_environment() -> Context:
    """The span that has started this process, if TRACEPARENT names one."""
    carrier = {name: os.environ.get(name.upper(), "") for name in ("traceparent", "tracestate")}
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _of_model(model: ModelRun) -> Attributes:
    namespace, _, name = model.request.name.rpartition(".")
    own: Attributes = {
        DB_SYSTEM_NAME: "spark",
        DB_NAMESPACE: namespace,
        DB_COLLECTION_NAME: name,
        "dd.unique_id": model.request.unique_id,
        "dd.inputs": tuple(item.name for item in model.inputs or ()),
    }
    told = own if model.outcome is None else {**own, **_of_outcome(model.outcome)}
    return {name: value for name, value in told.items() if value not in ("", ())}


def _of_outcome(outcome: Outcome) -> Attributes:
    return {
        "dd.strategy": outcome.strategy,
        "dd.reason": outcome.why,
        "dd.as_of": format_time(outcome.as_of),
        "dd.held_back_by": outcome.held_back_by,
        "dd.fallbacks": tuple(outcome.fallbacks),
        "dd.input_rows": outcome.input_rows,
        "dd.rows_added": outcome.rows_added,
        "dd.rows_removed": outcome.rows_removed,
        "dd.rows_read": outcome.reads.rows,
        "dd.bytes_read": outcome.reads.bytes,
        "dd.bytes_written": outcome.bytes_written,
    }


def _of_phase(phase: Phase) -> Iterator[tuple[str, str | int]]:
    yield "dd.phase", phase.kind
    if phase.kind == "intake":
        yield "dd.source", phase.subject
        yield "dd.rows", phase.rows


def _fail(span: Span, error: BaseException, at: float) -> None:
    """By type and message alone: what has caused the error may hold secrets."""
    kind = type(error).__name__
    span.set_attribute(ERROR_TYPE, kind)
    span.add_event("exception", {EXCEPTION_TYPE: kind, EXCEPTION_MESSAGE: str(error)}, _ns(at))
    span.set_status(Status(StatusCode.ERROR, str(error)))


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
