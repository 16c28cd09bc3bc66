"""A client that has been let in."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.core.rights import EVERYTHING, Rights


@dataclass(frozen=True)
class User:
    """``name``: empty if the server asks nobody who they are. ``metrics``: may read /metrics. ``rows``: conditions, by
    patterns, that are part of each of the grants."""

    name: str
    rights: Rights
    metrics: bool = False
    rows: tuple[tuple[str, str], ...] = ()


ANYONE = User("", EVERYTHING, metrics=True)
"""Every client of a server without tokens."""
OWNER = User("token", EVERYTHING, metrics=True)
"""Who has the server's own token."""
