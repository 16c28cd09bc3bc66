"""A client that has been let in."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.core.rights import EVERYTHING, Rights, names


@dataclass(frozen=True)
class User:
    """``name``: empty if the server asks nobody who they are. ``metrics``: may read /metrics. ``rows``: conditions, by
    patterns, that are part of each of the grants. ``send``: patterns of the sources that may be sent events."""

    name: str
    rights: Rights
    metrics: bool = False
    rows: tuple[tuple[str, str], ...] = ()
    send: tuple[str, ...] = ()

    def may_send(self, name: str) -> bool:
        """Whether events may be sent to the source of this full name."""
        return names(self.send, name)


ANYONE = User("", EVERYTHING, metrics=True, send=("*",))
"""Every client of a server without tokens."""
OWNER = User("token", EVERYTHING, metrics=True, send=("*",))
"""Who has the server's own token."""
