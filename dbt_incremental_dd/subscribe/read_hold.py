"""An open subscription keeps the history that it has still to read: it holds ``since`` back, and says so again and
again; one that has died is forgotten. One with a name keeps it also while it is away, and remembers where it was."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
import threading
import uuid
from typing import Protocol

from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.core.time import Time, now
from dbt_incremental_dd.trace.holds import held_by, hold, release
from dbt_incremental_dd.trace.layout import CollectionStore

EXPIRY = 600_000
"""Ms after which a subscription without a name that says nothing more holds nothing back."""
_RENEWAL = EXPIRY // 3
_MAX_LAG = 5_000
"""Ms that subscriptions which are kept together may be said to be behind where they are."""
NAMED_EXPIRY = 7 * 86_400_000
"""Ms for which one with a name may be away."""


class Holder(Protocol):
    """What a subscription says of itself, so that what it has to read stays."""

    def at(self, t: Time) -> None:
        """All up to ``t`` has been read."""

    def forget(self) -> None:
        """It holds nothing any more."""


class ReadHold:
    """What one subscription says of itself, in a file of its own."""

    def __init__(self, place: CollectionStore, name: str | None = None) -> None:
        self._place = place
        self._name = name
        self._reader = uuid.uuid4().hex if name is None else _reader(name)
        self._expiry = EXPIRY if name is None else NAMED_EXPIRY
        who = f"of {_user()} on {socket.gethostname()}, process {os.getpid()}" if name is None else name
        self._by = f"subscription {who}"
        self._written: tuple[Time, Time] | None = None
        """Up to where it has read, and when it said so."""

    @property
    def remembered(self) -> Time | None:
        """Up to where the subscription of this name has read; None if there has been none."""
        found = None if self._name is None else held_by(self._place, self._reader)
        return None if found is None else found.at

    def at(self, t: Time) -> None:
        """All up to ``t`` has been read. Where nothing may be written nothing is held; but one with a name is refused
        (StateError)."""
        clock = now()
        if self._written is not None and self._written[0] == t and clock - self._written[1] < _RENEWAL:
            return
        self._written = (t, clock)
        try:
            hold(self._place, self._reader, t, self._by, clock + self._expiry)
        except OSError as error:
            if self._name is not None:
                raise StateError(
                    f"where subscription {self._name} to {self._place.name} is cannot be written: {error}",
                    "Subscribe without a name, or let this user write into `state_root`.",
                ) from error

    def forget(self) -> None:
        """It holds nothing any more."""
        self._written = None
        release(self._place, self._reader)


class SharedReadHold:
    """What many subscriptions to one collection say of themselves, in one file: where the last of them is. They say it
    when ``say`` is called: before one that is new or has gone back reads, and again and again after that."""

    def __init__(self, place: CollectionStore) -> None:
        self._hold = ReadHold(place)
        self._positions: dict[int, Time] = {}
        self._written: tuple[Time, Time] | None = None
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def member(self) -> Holder:
        """For one more subscription."""
        return _Member(self)

    def move(self, reader: int, t: Time | None) -> None:
        """That one is at ``t``, or gone."""
        with self._lock:
            if t is None:
                self._positions.pop(reader, None)
            else:
                self._positions[reader] = t

    def write(self) -> None:
        """Writes where the last of them is, or that there is none, unless that has been written lately."""
        with self._writing:
            clock = now()
            with self._lock:
                last = min(self._positions.values(), default=None)
            if last is None:
                self._hold.forget()
                self._written = None
            elif self._written is None or last < self._written[0] or clock - self._written[1] >= _MAX_LAG:
                self._written = (last, clock)
                self._hold.at(last)


class _Member:
    def __init__(self, shared: SharedReadHold) -> None:
        self._shared = shared

    def at(self, t: Time) -> None:
        self._shared.move(id(self), t)

    def forget(self) -> None:
        self._shared.move(id(self), None)


def _reader(name: str) -> str:
    """Different for different names."""
    if not name.strip():
        raise ConfigError("a subscription's name is empty", "Give it a name, or none.")
    word = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
    return f"{word}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"
