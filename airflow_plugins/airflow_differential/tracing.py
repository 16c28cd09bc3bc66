"""The task's span, for what the task starts: where Airflow sends traces, dbt's go on in them."""

from __future__ import annotations


def trace_context() -> dict[str, str]:
    """The environment variables that name the current span (W3C's Trace Context); none without a span."""
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:
        return {}
    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {name.upper(): value for name, value in carrier.items()}
