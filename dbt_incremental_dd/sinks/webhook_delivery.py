"""One change as a signed HTTP request, and the attempts to deliver it.

Its headers are those of Standard Webhooks 1.0 (https://www.standardwebhooks.com): ``webhook-id``, the same whenever the
change is sent, ``webhook-timestamp``, and with a secret ``webhook-signature``.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import urllib3

from dbt_incremental_dd.core.errors import ConfigError, SinkError
from dbt_incremental_dd.core.standard_webhooks import secret_key, signed_headers

AT_ONCE = 8
"""Requests that are on their way at the same time: of different keys."""
RESENT = "dbt-dd-resent"
"""The header of a change that was rejected before: how many times."""
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

    @property
    def host(self) -> str:
        """For messages: a path may hold a token."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def id(self) -> str:
        """Names the URL where it must not be read."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:16]

    def require_url(self, collection: str) -> None:
        """Raises ConfigError for something that is no URL of a webhook."""
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise ConfigError(f"{collection}: {self.url} is no URL of a webhook", "Write https://host/path.")


@dataclass(frozen=True)
class Event:
    """A change: its id, and what is sent of it, JSON."""

    id: str
    body: bytes


class NotDelivered(SinkError):
    """A change was neither taken nor rejected. ``reason``: of its last attempt; empty if there was none."""

    def __init__(self, message: str, remedy: str, reason: str) -> None:
        super().__init__(message, remedy)
        self.reason = reason


class Delivery:
    """Sends a collection's changes to a sink, from several threads. Once one of them has failed in all attempts, the
    others give up."""

    def __init__(self, collection: str, sink: Sink) -> None:
        self._collection = collection
        self._sink = sink
        self._key = secret_key(sink.secret)
        self._http = urllib3.PoolManager(maxsize=AT_ONCE, retries=False, timeout=_TIMEOUT)
        self._ended = threading.Event()
        """Whether no more is to be sent: requests that wait for their turn, or for another attempt, give up."""
        self._failure = ""
        """Why the first one that failed in all attempts did."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def send(self, event: Event, rejections: int = 0) -> str | None:
        """None once the receiver has taken it; why, if it does not want it. ``rejections``: how many times it was
        rejected before. Raises NotDelivered if it cannot be reached, or fails, in all attempts."""
        reason = ""
        for attempt in range(self._sink.attempts):
            if self._ended.is_set():
                break
            try:
                answer = self._http.request(
                    "POST", self._sink.url, body=event.body, headers=self._headers(event, rejections)
                )
            except urllib3.exceptions.HTTPError as error:
                reason, wait = str(error), None
            else:
                if 200 <= answer.status < 300:
                    return None
                reason, wait = f"status {answer.status}", _seconds(answer.headers.get("retry-after"))
                if answer.status < 500 and answer.status not in _TRANSIENT:
                    return reason
            if attempt + 1 < self._sink.attempts:
                self._ended.wait(min(self._sink.wait * 2**attempt if wait is None else wait, _LONGEST_WAIT))
        else:
            self._failure = self._failure or reason
            self._ended.set()
        raise NotDelivered(
            f"{self._collection}: a change was not delivered to {self._sink.host} in {self._sink.attempts} attempts: "
            f"{self._failure}",
            "Start it again when the receiver answers: it goes on where it was.",
            reason,
        )

    def _headers(self, event: Event, rejections: int) -> dict[str, str]:
        headers = signed_headers(event.id, event.body, self._key)
        return headers | {RESENT: str(rejections)} if rejections else headers


def _seconds(text: str | None) -> float | None:
    """Of ``Retry-After``, if it is a number."""
    return float(text) if text is not None and text.isdecimal() else None
