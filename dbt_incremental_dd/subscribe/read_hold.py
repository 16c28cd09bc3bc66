"""Read holds: an open subscription holds ``since`` back at its position and renews this hold; holds of dead
subscriptions expire. A named subscription's hold lasts longer and stores its position."""

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
from dbt_incremental_dd.trace.holds import held_by, hold
from dbt_incremental_dd.trace.holds import release as release_hold
from dbt_incremental_dd.trace.layout import CollectionStore

EXPIRY = 600_000
"""Lifetime of an unnamed subscription's hold, in ms after its last renewal."""
_RENEWAL = EXPIRY // 3
_MAX_LAG = 5_000
"""By how much a shared hold's stored position may lag, in ms."""
NAMED_EXPIRY = 7 * 86_400_000
"""Lifetime of a named subscription's hold, in ms."""


class Holder(Protocol):
    """Holds a collection's history back for a subscription."""

    def advance_to(self, t: Time) -> None:
        """Everything up to ``t`` has been read."""

    def release(self) -> None:
        """Ends the hold."""


class ReadHold:
    """One subscription's hold, in a file of its own."""

    def __init__(self, place: CollectionStore, name: str | None = None) -> None:
        self._place = place
        self._name = name
        self._reader = uuid.uuid4().hex if name is None else _reader(name)
        self._expiry = EXPIRY if name is None else NAMED_EXPIRY
        who = f"of {_user()} on {socket.gethostname()}, process {os.getpid()}" if name is None else name
        self._by = f"subscription {who}"
        self._written: tuple[Time, Time] | None = None
        """The position written last, and the clock's time then."""

    @property
    def remembered(self) -> Time | None:
        """The stored position of the named subscription; None if there is none."""
        found = None if self._name is None else held_by(self._place, self._reader)
        return None if found is None else found.at

    def advance_to(self, t: Time) -> None:
        """Everything up to ``t`` has been read. If the state root cannot be written, an unnamed subscription holds
        nothing; a named one raises StateError."""
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

    def release(self) -> None:
        """Ends the hold."""
        self._written = None
        release_hold(self._place, self._reader)


class SharedReadHold:
    """One hold for many subscriptions to a collection, at the position of the last of them. ``write`` stores it: call
    it regularly, and before a member that is new or has gone back reads."""

    def __init__(self, place: CollectionStore) -> None:
        self._hold = ReadHold(place)
        self._positions: dict[int, Time] = {}
        self._written: tuple[Time, Time] | None = None
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def member(self) -> Holder:
        """A holder for one more subscription."""
        return _Member(self)

    def set_position(self, reader: int, t: Time | None) -> None:
        """Sets a member's position; None removes the member."""
        with self._lock:
            if t is None:
                self._positions.pop(reader, None)
            else:
                self._positions[reader] = t

    def write(self) -> None:
        """Stores the last member's position, or removes the hold if there are no members. Skipped if it was stored
        recently."""
        with self._writing:
            clock = now()
            with self._lock:
                last = min(self._positions.values(), default=None)
            if last is None:
                self._hold.release()
                self._written = None
            elif self._written is None or last < self._written[0] or clock - self._written[1] >= _MAX_LAG:
                self._written = (last, clock)
                self._hold.advance_to(last)


class _Member:
    def __init__(self, shared: SharedReadHold) -> None:
        self._shared = shared

    def advance_to(self, t: Time) -> None:
        self._shared.set_position(id(self), t)

    def release(self) -> None:
        self._shared.set_position(id(self), None)


def _reader(name: str) -> str:
    """A file name, unique for each subscription's name. Raises ConfigError for an empty name."""
    if not name.strip():
        raise ConfigError("a subscription's name is empty", "Give it a name, or none.")
    word = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
    return f"{word}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"
