"""Who sends spans, by the environment variables of OpenTelemetry's SDK."""

from __future__ import annotations

import os
from importlib.metadata import entry_points

from opentelemetry.sdk.trace.export import SpanExporter

from dbt_incremental_dd.core.errors import ConfigError

_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def span_exporters(endpoint: str) -> tuple[SpanExporter, ...]:
    """OTLP over HTTP to an endpoint, if one is given; or else those that OTEL_TRACES_EXPORTER names, by default OTLP.
    Raises ConfigError for one that is not installed."""
    if endpoint:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return (OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces"),)
    names = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    return tuple(_exporter(name.strip()) for name in names.split(","))


def _exporter(name: str) -> SpanExporter:
    wanted = _of_protocol() if name == "otlp" else name
    found = next(iter(entry_points(group="opentelemetry_traces_exporter", name=wanted)), None)
    if found is None:
        raise ConfigError(f"no exporter of spans called {wanted} is installed", "Install it, or name another one.")
    made: SpanExporter = found.load()()
    return made


def _of_protocol() -> str:
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((os.environ[name] for name in names if os.environ.get(name)), "http/protobuf")
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}", f"It may be {' or '.join(_PROTOCOLS)}.")
    return _PROTOCOLS[protocol]
