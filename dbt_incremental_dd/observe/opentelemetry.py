"""Runs as OpenTelemetry's traces.

Spans are made of what a model's run has noted, once it has ended, and made and sent beside the run, by one thread:
importing the SDK alone takes longer than a small change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from dbt_incremental_dd.observe.background import background
from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.observe.extras import require
from dbt_incremental_dd.runtime.observers import ModelRun, Observer

if TYPE_CHECKING:
    from dbt_incremental_dd.observe.spans import Spans


def observer(command: Command) -> Observer:
    """One for the command's run. Raises ConfigError where the SDK is not installed."""
    require("opentelemetry.sdk.trace", "opentelemetry", "OTEL_SDK_DISABLED")
    return OpenTelemetry(command)


class OpenTelemetry:
    """See ``Observer``."""

    def __init__(self, command: Command) -> None:
        from opentelemetry.context import get_current

        self._command = command
        self._context = get_current()  # dbt hands its caller's on to its threads
        self._background = background("opentelemetry")
        self._has_models = False

    def model_began(self, model: ModelRun) -> None:
        """A span is made at its end."""

    def model_ended(self, model: ModelRun) -> None:
        self._has_models = True
        self._send(lambda spans: spans.model_ended(model))

    def run_ended(self) -> None:
        """Raises NotSent for spans that have not been sent, or not yet. Of a run without models there are none."""
        if not self._has_models:
            return
        ended = time.time()
        self._send(lambda spans: spans.command_ended(ended))
        self._background.settle()

    def _send(self, send: Callable[[Spans], None]) -> None:
        self._background.send(lambda: send(self._spans))

    @cached_property
    def _spans(self) -> Spans:
        from dbt_incremental_dd.observe.span_exporters import span_exporters
        from dbt_incremental_dd.observe.spans import Spans

        settings = self._command.settings.get("opentelemetry", {})
        exporters = span_exporters(settings.get("endpoint", ""))
        return Spans(self._command, self._context, exporters, settings.get("service_name", ""))
