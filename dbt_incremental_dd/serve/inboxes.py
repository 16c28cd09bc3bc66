"""The inboxes of a server's sources: which there are, and how much waits in each."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from dbt_incremental_dd.trace.inbox import Inbox, InboxSettings
from dbt_incremental_dd.trace.layout import Storage

_SECONDS = 1.0
"""For which what is known of an inbox counts; longer if it takes long to find out."""
_TIMES_AS_LONG = 10
_MAX_FILES = 100_000
"""Requests that may wait in an inbox."""
_MAX_KNOWN = 1_000
"""Inboxes that are remembered."""


@dataclass
class OpenInbox:
    """``files`` and ``bytes``: that wait in it, as last looked at, with those that this server has added since.
    ``until``: when to look again, by the monotonic clock."""

    inbox: Inbox
    settings: InboxSettings
    files: int
    bytes: int
    until: float

    @property
    def is_full(self) -> bool:
        """Whether no more may wait in it."""
        return self.bytes >= self.settings.inbox_bytes or self.files >= _MAX_FILES

    def add(self, size: int) -> None:
        """Notes a file of so many bytes."""
        self.files += 1
        self.bytes += size


class Inboxes:
    """Threads may share it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[str, OpenInbox] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> OpenInbox | None:
        """The inbox of the source of this full name; None if it has none. Raises StateError if its settings cannot be
        read, and OSError if the storage fails."""
        known = self._known.get(name)
        if known is not None and time.monotonic() < known.until:
            return known
        inbox, began = Inbox(self._storage.collection(name)), time.monotonic()
        settings = inbox.settings()
        if settings is None:
            return None
        waiting = inbox.waiting()
        ended = time.monotonic()
        until = ended + max(_SECONDS, _TIMES_AS_LONG * (ended - began))
        found = OpenInbox(inbox, settings, len(waiting), sum(waiting.values()), until)
        with self._lock:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[name] = found
        return found
