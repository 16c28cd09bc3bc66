"""A collection's changes as HTTP requests, at least once, and in order for each key.

A request has one key's change at one time, as JSON. Its headers are those of Standard Webhooks 1.0
(https://www.standardwebhooks.com): ``webhook-id``, the same whenever the change is sent, ``webhook-timestamp``, and
with a secret ``webhook-signature``.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Self
from urllib.parse import urlsplit

import urllib3

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, FrontierError, SinkError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import TIME
from dbt_incremental_dd.core.standard_webhooks import SECRET as SECRET
from dbt_incremental_dd.core.standard_webhooks import secret_key, signed_headers
from dbt_incremental_dd.sinks.events import changes
from dbt_incremental_dd.sinks.following import follow, require_key
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.subscribe.json_values import json_rows
from dbt_incremental_dd.subscribe.read_hold import ReadHold
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription

_AT_ONCE = 8
"""Requests that are on their way at the same time: of different keys."""
_TRANSIENT = frozenset({408, 425, 429})
"""Statuses below 500 after which a request is worth another attempt."""
_LONGEST_WAIT = 60.0
_TIMEOUT = urllib3.Timeout(connect=5.0, read=30.0)


@dataclass(frozen=True)
class Sink:
    """``key``: columns each of whose values has one row. ``secret``: the key of signatures, perhaps ``whsec_`` and
    base64. ``rejected``: a file to which changes are appended that the receiver does not want; without one they end
    the publisher. ``attempts``: of a request that fails for another reason; ``wait``: seconds before the second one,
    twice as many before each further one."""

    url: str
    key: tuple[str, ...]
    secret: str = field(default="", repr=False)
    rejected: Path | None = None
    attempts: int = 8
    wait: float = 0.5


@dataclass(frozen=True)
class _Event:
    id: str
    body: bytes


def sink_of(wanted: Wanted) -> Sink:
    """Signed by the option ``secret``, or by what the environment has.

    Raises ConfigError for settings that mean nothing to it.
    """
    wanted.require_only("webhook", "key", "options", "rejected")
    if set(wanted.options) - {"secret"}:
        raise ConfigError("publishing to a webhook takes the option secret alone", "Remove the others.")
    secret = wanted.options.get("secret") or os.environ.get(SECRET, "")
    return Sink(wanted.target, wanted.key, secret, wanted.rejected)


def publish(collection: Collection, sink: Sink, *, once: bool = False, ended: Event | None = None) -> None:
    """Sends all changes since the last ones that were sent, or the rows at first; then goes on with new ones, until
    ``ended``, unless ``once``.

    Raises ConfigError for invalid settings, SinkError where a change cannot be delivered: calling it again continues
    with the changes of that time, of which some may then come twice.
    """
    require_key(collection, sink.key)
    if urlsplit(sink.url).scheme not in ("http", "https"):
        raise ConfigError(f"{collection.name}: {sink.url} is no URL of a webhook", "Write https://host/path.")
    name = f"webhook {hashlib.sha256(sink.url.encode()).hexdigest()[:16]}"
    first = ReadHold(collection.place, f"{name}, first rows")
    with ThreadPoolExecutor(_AT_ONCE) as pool, _Sender(collection, sink) as sender:

        def write(batch: Batch) -> None:
            if batch.after is not None:
                first.release()
            sender.write(pool, batch)

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


class _Sender:
    def __init__(self, collection: Collection, sink: Sink) -> None:
        self._collection = collection
        self._sink = sink
        self._key = secret_key(sink.secret)
        self._http = urllib3.PoolManager(maxsize=_AT_ONCE, retries=False, timeout=_TIMEOUT)
        self._ended = threading.Event()
        """Whether no more is to be sent: requests that wait for their turn, or for another attempt, give up."""
        self._failure = ""
        """Why the first one that failed in all attempts did."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def write(self, pool: ThreadPoolExecutor, batch: Batch) -> None:
        """Sends the changes, one time after the other: at one time, a key has one."""
        for one in batch.times():
            rejected = [found for found in pool.map(self._delivered, self._events(one)) if found is not None]
            self._set_aside(rejected)
            reached("publish: sent")

    def _events(self, batch: Batch) -> Iterator[_Event]:
        name, t = self._collection.name, batch.timestamp
        for change in changes(name, json_rows(batch.updates.drop_columns([TIME])), t, self._sink.key):
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
            id = hashlib.sha256(f"{name}\n{t}\n{key}".encode()).hexdigest()[:32]
            yield _Event(id, json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode())

    def _delivered(self, event: _Event) -> dict[str, Any] | None:
        """None once the receiver has taken it; what it has answered if it does not want it. Raises SinkError if it
        cannot be reached, or fails, in all attempts."""
        failure = ""
        for attempt in range(self._sink.attempts):
            if self._ended.is_set():
                break
            try:
                answer = self._http.request(
                    "POST", self._sink.url, body=event.body, headers=signed_headers(event.id, event.body, self._key)
                )
            except urllib3.exceptions.HTTPError as error:
                failure, wait = str(error), None
            else:
                if 200 <= answer.status < 300:
                    return None
                failure, wait = f"status {answer.status}", _seconds(answer.headers.get("retry-after"))
                if answer.status < 500 and answer.status not in _TRANSIENT:
                    return {"id": event.id, "status": answer.status, "event": json.loads(event.body)}
            if attempt + 1 < self._sink.attempts:
                self._ended.wait(min(self._sink.wait * 2**attempt if wait is None else wait, _LONGEST_WAIT))
        else:
            self._failure = self._failure or failure
            self._ended.set()
        raise SinkError(
            f"{self._collection.name}: a change was not delivered to {self._host} in {self._sink.attempts} attempts: "
            f"{self._failure}",
            "Start it again when the receiver answers: it goes on where it was.",
        )

    def _set_aside(self, rejected: Iterable[dict[str, Any]]) -> None:
        """Appends what was rejected to the file. Raises SinkError where there is none."""
        lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in rejected]
        if not lines:
            return
        if self._sink.rejected is None:
            first = json.loads(lines[0])
            raise SinkError(
                f"{self._collection.name}: {self._host} rejects a change of key {first['event']['key']}: "
                f"status {first['status']}",
                "Correct the receiver, or set changes that it does not want aside: --rejected FILE.",
            )
        with self._sink.rejected.open("a", encoding="utf-8") as file:
            file.writelines(lines)

    @property
    def _host(self) -> str:
        """For messages: a path may hold a token."""
        return urlsplit(self._sink.url).netloc.rpartition("@")[2]


def _seconds(text: str | None) -> float | None:
    """Of ``Retry-After``, if it is a number."""
    return float(text) if text is not None and text.isdecimal() else None
