"""Runs as OpenLineage's events, sent by its client.

Events are made and sent beside the run, by one thread: importing the client alone takes longer than a small change.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.observe.background import WAIT_SECONDS, background
from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.observe.extras import require
from dbt_incremental_dd.observe.library_logs import hear
from dbt_incremental_dd.runtime.observers import ModelRun, Observer

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

    from dbt_incremental_dd.observe.lineage_events import Events

DEFAULT_NAMESPACE = "dbt"


def observer(command: Command) -> Observer:
    """One for the command's run. Raises ConfigError where the client is not installed."""
    require("openlineage.client", "openlineage", "OPENLINEAGE_DISABLED")
    return OpenLineage(command)


class OpenLineage:
    """See ``Observer``."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._settings = command.settings.get("openlineage", {})
        self._background = background("openlineage")
        self._has_models = False
        self._lock = threading.Lock()

    def model_began(self, model: ModelRun) -> None:
        self._begin()
        now = replace(model)  # which the run does not change while the event is made
        self._send(lambda events: events.model_began(id(model), now))

    def model_ended(self, model: ModelRun) -> None:
        self._send(lambda events: events.model_ended(id(model), model))

    def run_ended(self) -> None:
        """Raises NotSent for events that have not been sent, or not yet. Of a run without models there are none."""
        if not self._has_models:
            return
        ended = time.time()
        self._send(lambda events: events.command_ended(ended))
        self._background.send(self._close)
        self._background.settle()

    def _begin(self) -> None:
        """The first model's run begins the command's, which may have none."""
        with self._lock:
            if not self._has_models:
                self._has_models = True
                self._background.send(self._require_parents)
                self._send(lambda events: events.command_began())

    def _send(self, make: Callable[[Events], RunEvent]) -> None:
        self._background.send(lambda: self._client.emit(make(self._events)))

    def _require_parents(self) -> None:
        from dbt_incremental_dd.observe.lineage_parent import require_parents

        require_parents()

    def _close(self) -> None:
        """Clients may have queues of their own."""
        self._client.close(WAIT_SECONDS)

    @cached_property
    def _events(self) -> Events:
        from dbt_incremental_dd.observe.lineage_events import Events

        namespace = self._settings.get("namespace") or os.environ.get("OPENLINEAGE_NAMESPACE") or DEFAULT_NAMESPACE
        return Events(self._command, namespace)

    @cached_property
    def _client(self) -> OpenLineageClient:
        """By the profile's url, or as the client itself finds its configuration."""
        from openlineage.client import OpenLineageClient

        hear("openlineage")
        url = self._settings.get("url")
        return OpenLineageClient(transport=_http(url)) if url else OpenLineageClient()


def _http(url: str) -> Any:
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    key = os.environ.get("OPENLINEAGE_API_KEY")
    auth = {"auth": {"type": "api_key", "apiKey": key}} if key else {}
    return HttpTransport(HttpConfig.from_dict({"url": url, **auth}))
