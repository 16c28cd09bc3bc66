"""The sinks, by what a command or an exposure calls their targets: an import and a line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Protocol, TypeVar

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sinks import files, kafka, postgres, resending, webhook
from dbt_incremental_dd.sinks.rejected import Rejected
from dbt_incremental_dd.sinks.resending import Resent
from dbt_incremental_dd.sinks.wanted import Wanted

S = TypeVar("S", contravariant=True)


class Publish(Protocol[S]):
    """Publishes a collection's changes to a sink until ``ended``, or with ``once`` up to now. Raises ConfigError for
    settings that mean nothing, SinkError where the sink fails: calling it again goes on from where it was."""

    def __call__(self, collection: Collection, sink: S, *, once: bool = False, ended: Event | None = None) -> None: ...


def _wanted(sink_of: Callable[[Wanted], S], publish: Publish[S]) -> Publish[Wanted]:
    """The same, of a sink as a user says it."""

    def published(collection: Collection, sink: Wanted, *, once: bool = False, ended: Event | None = None) -> None:
        publish(collection, sink_of(sink), once=once, ended=ended)

    return published


SINKS: Mapping[str, Publish[Wanted]] = {
    "topic": _wanted(kafka.sink_of, kafka.publish),
    "table": _wanted(postgres.sink_of, postgres.publish),
    "webhook": _wanted(webhook.sink_of, webhook.publish),
    "files": _wanted(files.sink_of, files.publish),
}


def rejected(collection: Collection, kind: str, wanted: Wanted) -> list[Rejected]:
    """The changes that the sink's receiver has rejected, by time. Raises ConfigError for a sink that has none, or names
    no file for them; SinkError if that cannot be read."""
    return resending.rejected(collection, _webhook(collection, kind, wanted))


def resend(collection: Collection, kind: str, wanted: Wanted) -> Resent:
    """Sends them again. Raises as ``rejected`` does, and SinkError if the receiver cannot be reached."""
    return resending.resend(collection, _webhook(collection, kind, wanted))


def _webhook(collection: Collection, kind: str, wanted: Wanted) -> webhook.Sink:
    if kind != "webhook":
        raise ConfigError(
            f"{collection.name}: no change is rejected by a sink like {kind} {wanted.target}",
            "Those of webhooks are: --webhook URL --rejected FILE.",
        )
    return webhook.sink_of(wanted)
