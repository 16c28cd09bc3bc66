"""Tells a command or a webhook that a promise has been missed, or is kept again."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.standard_webhooks import secret_key, signed_headers
from dbt_incremental_dd.trace.watched import Promise

_SECONDS = 30.0
"""A command is ended after this time."""
_ATTEMPTS = 3
_TIMEOUT = 10.0
"""Seconds for one attempt of a request."""


@dataclass(frozen=True)
class LagEvent:
    """``model``: the collection. ``target_lag`` and ``lag`` in ms; ``promise``: the new state, and since when."""

    model: str
    target_lag: int
    lag: int
    promise: Promise

    @property
    def body(self) -> bytes:
        """As JSON, which commands get on their standard input, and webhooks as the request's body."""
        kind = f"lag.{self.promise.state}"
        found = {"type": kind, "model": self.model, "target_lag": self.target_lag, "lag": self.lag}
        return json.dumps({**found, "since": self.promise.since}).encode()

    @property
    def environment(self) -> dict[str, str]:
        """As variables: times in ms."""
        return {
            "DBT_DD_MODEL": self.model,
            "DBT_DD_STATE": self.promise.state,
            "DBT_DD_TARGET_LAG": str(self.target_lag),
            "DBT_DD_LAG": str(self.lag),
            "DBT_DD_SINCE": str(self.promise.since),
        }


@dataclass(frozen=True)
class Alerts:
    """``command``: a program and its arguments, which no shell interprets. ``url``: of a webhook, whose requests the
    secret signs as Standard Webhooks says."""

    command: tuple[str, ...] = ()
    url: str = ""
    key: bytes = field(default=b"", repr=False)

    @staticmethod
    def of(command: str | None, url: str | None, secret: str) -> Alerts:
        """Raises ConfigError if the command is not one, the URL none of a webhook, or the secret damaged."""
        try:
            words = tuple(shlex.split(command or ""))
        except ValueError as error:
            raise ConfigError(f"--on-missed-lag is {command!r}: {error}", "Close its quotes.") from error
        if command is not None and not words:
            raise ConfigError("--on-missed-lag names no command", "Give a program and its arguments.")
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise ConfigError(f"--on-missed-lag-webhook is {url}, which is no URL of a webhook", "Write https://...")
        return Alerts(words, url or "", secret_key(secret) if url else b"")

    def tell(self, event: LagEvent) -> Iterator[str]:
        """Tells both, within bounded time. Yields what went wrong, and raises nothing for it."""
        if self.command:
            yield from _run(self.command, event)
        if self.url:
            yield from _post(self.url, self.key, event)


def _run(command: tuple[str, ...], event: LagEvent) -> Iterator[str]:
    environment = {**os.environ, **event.environment}
    try:
        done = subprocess.run(
            command,
            input=event.body,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        yield f"{command[0]} was ended after {_SECONDS:g} seconds"
    except OSError as error:
        yield f"{command[0]} cannot be run: {error.strerror or error}"
    else:
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            yield f"{command[0]} ended with status {done.returncode}{': ' + said[-1] if said else ''}"


def _post(url: str, key: bytes, event: LagEvent) -> Iterator[str]:
    import urllib3

    name = f"{event.model}\n{event.promise.state}\n{event.promise.since}"
    id = hashlib.sha256(name.encode()).hexdigest()[:32]
    retries = urllib3.Retry(
        _ATTEMPTS - 1, redirect=0, allowed_methods=None, status_forcelist=(429, 502, 503, 504), backoff_factor=1.0,
        respect_retry_after_header=False,
    )  # fmt: skip
    try:
        with urllib3.PoolManager(timeout=_TIMEOUT) as http:
            headers = signed_headers(id, event.body, key)
            status = http.request("POST", url, body=event.body, headers=headers, retries=retries).status
            failure = "" if 200 <= status < 300 else f"status {status}"
    except urllib3.exceptions.HTTPError as error:
        failure = str(error.__cause__ or error).rsplit(": ", 1)[-1]
    if failure:
        yield f"{_host(url)} was not told: {failure}"


def _host(url: str) -> str:
    """For messages: a path may hold a token."""
    return urlsplit(url).netloc.rpartition("@")[2]
