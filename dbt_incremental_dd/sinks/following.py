"""What all sinks share: following a collection from where the sink's own record of progress says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.subscribe.read_hold import ReadHold
from dbt_incremental_dd.subscribe.subscription import POLL, Batch, Start, Subscription


def require_key(collection: Collection, key: Sequence[str]) -> None:
    """Raises ConfigError for a key that is missing, or names no columns of the collection."""
    names = collection.schema.names
    if not key or not set(key) <= set(names):
        raise ConfigError(
            f"{collection.name}: the key of what is published is {', '.join(key) or 'missing'}",
            f"Name columns of which each value has one row, of {', '.join(names)}.",
        )


def resumed(collection: Collection, name: str, at: Time | None) -> Subscription:
    """A named subscription that goes on after the time ``at``, which the sink has recorded; None: from the beginning.
    Raises FrontierError where the history since then is gone."""
    place = collection.place
    if at is None:
        return Subscription(place, Start(as_of=collection.frontiers.last), name=name)
    remembered = ReadHold(place, name).remembered
    # A sink does not record times without changes.
    begin = at if remembered is None else max(at, remembered)
    return Subscription(place, Start(as_of=begin, snapshot=False), name=name)


def follow(
    subscription: Subscription, write: Callable[[Batch], None], *, once: bool, ended: Event | None = None
) -> None:
    """Writes each batch as it comes, until ``ended``; with ``once``, those that there are."""
    ended = ended or Event()
    with subscription:
        while not ended.is_set():
            batch = subscription.poll()
            if batch is not None:
                write(batch)
            elif once:
                return
            else:
                ended.wait(POLL)


def options_of(given: Sequence[str]) -> dict[str, str]:
    """A mapping of ``NAME=VALUE`` texts. Raises ConfigError for a malformed one."""
    if wrong := next((text for text in given if text.find("=") < 1), None):
        raise ConfigError(f"an option is NAME=VALUE, not {wrong}")
    return dict(text.partition("=")[::2] for text in given)
