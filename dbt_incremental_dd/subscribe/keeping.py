"""An open subscription keeps the history that it has still to read: it holds ``since`` back, and says so again and
again; one that has died is forgotten."""

from __future__ import annotations

import getpass
import os
import socket
import uuid

from dbt_incremental_dd.core.time import Time, now
from dbt_incremental_dd.trace.holds import hold, release
from dbt_incremental_dd.trace.layout import Place

FORGOTTEN = 600_000
"""Ms after which a subscription that says nothing more holds nothing back."""
_AGAIN = FORGOTTEN // 3


class Keeping:
    """What one subscription says of itself."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._reader = uuid.uuid4().hex
        self._by = f"subscription of {_user()} on {socket.gethostname()}, process {os.getpid()}"
        self._said: tuple[Time, Time] | None = None
        """Up to where it has read, and when it said so."""

    def at(self, t: Time) -> None:
        """All up to ``t`` has been read. Where nothing may be written nothing is held."""
        clock = now()
        if self._said is not None and self._said[0] == t and clock - self._said[1] < _AGAIN:
            return
        self._said = (t, clock)
        try:
            hold(self._place, self._reader, t, self._by, clock + FORGOTTEN)
        except OSError:
            return

    def end(self) -> None:
        """It reads no more."""
        if self._said is not None:
            self._said = None
            release(self._place, self._reader)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user {os.getuid()}"
