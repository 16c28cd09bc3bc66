"""The inboxes of a server's sources: which there are, and how much waits in each."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from dbt_incremental_dd.trace.inbox import Inbox, InboxSettings
from dbt_incremental_dd.trace.layout import Storage

_SECONDS = 1.0
"""For which what is known of an inbox counts."""
_MAX_KNOWN = 1_000
"""Inboxes that are remembered."""


@dataclass
class OpenInbox:
    """``bytes``: that wait in it, as last looked at, with those that this server has added since."""

    inbox: Inbox
    settings: InboxSettings
    bytes: int
    looked: float

    @property
    def is_full(self) -> bool:
        """Whether no more may wait in it."""
        return self.bytes >= self.settings.inbox_bytes


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
        if known is not None and time.monotonic() - known.looked < _SECONDS:
            return known
        inbox, looked = Inbox(self._storage.collection(name)), time.monotonic()
        settings = inbox.settings()
        if settings is None:
            return None
        found = OpenInbox(inbox, settings, sum(inbox.waiting().values()), looked)
        with self._lock:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[name] = found
        return found
