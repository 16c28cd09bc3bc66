"""The sinks: another one is a module with ``sink_of`` and ``publish``, and its entry here."""

from __future__ import annotations

from threading import Event

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.sinks import files, kafka, postgres, webhook
from dbt_incremental_dd.sinks.wanted import Wanted

KINDS = ("topic", "table", "webhook", "files")
"""What a command or an exposure calls a sink's target."""


def publish(
    collection: Collection, kind: str, wanted: Wanted, *, once: bool = False, ended: Event | None = None
) -> None:
    """Publishes the collection's changes until ``ended``, or with ``once`` up to now. Raises ConfigError for settings
    that mean nothing, SinkError where the sink fails: calling it again goes on from where it was."""
    if kind == "topic":
        kafka.publish(collection, kafka.sink_of(wanted), once=once, ended=ended)
    elif kind == "table":
        postgres.publish(collection, postgres.sink_of(wanted), once=once, ended=ended)
    elif kind == "webhook":
        webhook.publish(collection, webhook.sink_of(wanted), once=once, ended=ended)
    else:
        files.publish(collection, files.sink_of(wanted), once=once, ended=ended)
