"""Spans as an OTLP server receives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class SpanRow:
    """One span. Times in ns."""

    trace: str
    id: str
    parent: str
    name: str
    began: int
    ended: int
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    is_error: bool
    events: tuple[Mapping[str, Any], ...]


def spans_of(bodies: Iterable[bytes]) -> list[SpanRow]:
    """The spans of requests, in order."""
    return [span for body in bodies for span in _spans(ExportTraceServiceRequest.FromString(body))]


def _spans(request: Any) -> Iterable[SpanRow]:
    for of in request.resource_spans:
        for scope in of.scope_spans:
            assert scope.scope.name == "dbt_incremental_dd" and scope.scope.version
            for span in scope.spans:
                yield SpanRow(
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _values(span.attributes),
                    _values(of.resource.attributes),
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    tuple(_values(event.attributes) for event in span.events),
                )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)
