"""What one client may send. The protocols have no other way to the inboxes of sources."""

from __future__ import annotations

import errno
import secrets

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.inboxes import Inboxes
from dbt_incremental_dd.serve.usage import Usage
from dbt_incremental_dd.serve.users.user import User

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
_RETRY_SECONDS = 10
_AGAIN = "Send the same request later."


class Refused(DifferentialError):
    """Events are not accepted, and nothing of them is kept. ``status``: HTTP's; ``retry_after``: in seconds, if the
    same request may succeed later."""

    def __init__(self, status: int, message: str, remedy: str = "", retry_after: int | None = None) -> None:
        super().__init__(message, remedy)
        self.status = status
        self.retry_after = retry_after


class Sender:
    """What ``user`` may send. ``usage``: the access for which it is sent."""

    def __init__(self, inboxes: Inboxes, user: User, usage: Usage) -> None:
        self._inboxes = inboxes
        self._user = user
        self._usage = usage

    def require(self, source: str) -> None:
        """Raises Refused if the user may not send to the source of this full name, whether there is one or not."""
        self._usage.action, self._usage.collection = "send", source
        if not self._user.may_send(source):
            raise Refused(403, f"you may not send events to {source}", "Whoever runs the server can allow it: send.")

    def send(self, source: str, key: str | None, lines: bytes, events: int) -> str:
        """Adds events to the source's inbox, once for each key; they are durable on return. Returns the key, which is a
        new one if it is None.

        ``lines``: JSON, an event a line; ``events``: how many. A key is the user's own: others may use the same one.
        Raises Refused, also if other events were sent with this key."""
        self.require(source)
        key = secrets.token_urlsafe() if key is None else key
        try:
            self._send(source, f"{len(self._user.name)} {self._user.name} {key}", lines)
        except OSError as error:
            status = 507 if error.errno in _FULL_DISK else 503
            raise Refused(
                status, f"the events cannot be stored: {error.strerror or 'the storage fails'}", _AGAIN, _RETRY_SECONDS
            ) from error
        self._usage.rows = events
        return key

    def _send(self, source: str, key: str, lines: bytes) -> None:
        found = self._inboxes.find(source)
        if found is None:
            raise Refused(
                404,
                f"there is no source {source} that takes events",
                "Give it `connector: http`, and run once a model that reads it.",
            )
        if found.is_full:
            raise Refused(429, f"{source} has more events waiting than it may", _AGAIN, _RETRY_SECONDS)
        if not found.inbox.accept(key, lines):
            raise Refused(422, "other events were sent with this Idempotency-Key", "Each request has a key of its own.")
        found.add(len(lines))
