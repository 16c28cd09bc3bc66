"""A collection's changes as HTTP requests, at least once, and in order for each key.

A request has one key's change at one time, as JSON (``webhook_delivery.py``).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Ended

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, FrontierError, SinkError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import TIME
from dbt_incremental_dd.core.standard_webhooks import SECRET as SECRET
from dbt_incremental_dd.sinks.events import changes
from dbt_incremental_dd.sinks.following import follow, require_key
from dbt_incremental_dd.sinks.rejected import RejectedFile, body_of
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.sinks.webhook_delivery import AT_ONCE, Delivery, Event
from dbt_incremental_dd.sinks.webhook_delivery import Sink as Sink
from dbt_incremental_dd.subscribe.json_values import json_rows
from dbt_incremental_dd.subscribe.read_hold import ReadHold
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription


def sink_of(wanted: Wanted) -> Sink:
    """Signed by the option ``secret``, or by what the environment has.

    Raises ConfigError for settings that mean nothing to it.
    """
    wanted.require_only("webhook", "key", "options", "rejected")
    if set(wanted.options) - {"secret"}:
        raise ConfigError("publishing to a webhook takes the option secret alone", "Remove the others.")
    secret = wanted.options.get("secret") or os.environ.get(SECRET, "")
    return Sink(wanted.target, wanted.key, secret, wanted.rejected)


def publish(collection: Collection, sink: Sink, *, once: bool = False, ended: Ended | None = None) -> None:
    """Sends all changes since the last ones that were sent, or the rows at first; then goes on with new ones, until
    ``ended``, unless ``once``.

    Raises ConfigError for invalid settings, SinkError where a change cannot be delivered: calling it again continues
    with the changes of that time, of which some may then come twice.
    """
    require_key(collection, sink.key)
    sink.require_url(collection.name)
    name = f"webhook {sink.id}"
    first = ReadHold(collection.place, f"{name}, first rows")
    with ThreadPoolExecutor(AT_ONCE) as pool, Delivery(collection.name, sink) as delivery:

        def write(batch: Batch) -> None:
            if batch.after is not None:
                first.release()
            _send(collection.name, sink, batch, pool, delivery)

        follow(_subscription(collection, name, first), write, once=once, ended=ended)
        first.release()


def _subscription(collection: Collection, name: str, first: ReadHold) -> Subscription:
    """One that goes on where the last one was. Where that one has not sent all of the first rows, they are sent again
    as of the same time, which ``first`` remembers: what has gone since is then sent as a change."""
    place = collection.place
    if ReadHold(place, name).remembered is not None:
        return Subscription(place, Start(), name=name)
    begun, last = first.remembered, collection.frontiers.last
    try:
        subscription = Subscription(place, Start(as_of=last if begun is None else begun), name=name)
    except FrontierError:  # the hold has expired
        begun, subscription = None, Subscription(place, Start(as_of=last), name=name)
    first.advance_to(last if begun is None else begun)
    return subscription


def _send(name: str, sink: Sink, batch: Batch, pool: ThreadPoolExecutor, delivery: Delivery) -> None:
    """Sends the changes, one time after the other: at one time, a key has one."""
    for one in batch.times():
        events = list(_events(name, sink, one))
        answers = zip(events, pool.map(delivery.send, events), strict=True)
        _set_aside(name, sink, [(event, reason) for event, reason in answers if reason is not None])
        reached("publish: sent")


def _events(name: str, sink: Sink, batch: Batch) -> Iterator[Event]:
    t = batch.timestamp
    for change in changes(name, json_rows(batch.updates.drop_columns([TIME])), t, sink.key):
        kind = "deleted" if change.after is None else "updated" if change.before is not None else "inserted"
        event = {
            "type": f"row.{kind}",
            "collection": name,
            "time": t,
            "key": change.key,
            "before": change.before,
            "after": change.after,
        }
        key = json.dumps(change.key, sort_keys=True)
        yield Event(hashlib.sha256(f"{name}\n{t}\n{key}".encode()).hexdigest()[:32], body_of(event))


def _set_aside(name: str, sink: Sink, rejected: list[tuple[Event, str]]) -> None:
    """Appends what was rejected, with the reasons, to the file. Raises SinkError where there is none."""
    if not rejected:
        return
    if sink.rejected is None:
        event, reason = rejected[0]
        raise SinkError(
            f"{name}: {sink.host} rejects a change of key {json.loads(event.body)['key']}: {reason}",
            "Correct the receiver, or set changes that it does not want aside: --rejected FILE.",
        )
    RejectedFile(sink.rejected, name, sink).append(rejected)
