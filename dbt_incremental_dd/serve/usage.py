"""One access of a client, as the audit log and the metrics tell of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from dbt_incremental_dd.core.time import Time


@dataclass
class Usage:
    """``protocol``: ``http``, ``websocket`` or ``postgres``. ``action``: what the client does, one of a few words, or
    empty for files of pages. ``path``: of a request that is refused. ``rows``: rows or updates that have been sent.
    ``status``: HTTP's, or an SQLSTATE. ``has_begun``: a subscription has been reported to have."""

    protocol: str
    user: str
    peer: str
    action: str = ""
    path: str | None = None
    collection: str | None = None
    sql: str | None = None
    as_of: Time | None = None
    rows: int = 0
    bytes: int = 0
    status: str = ""
    has_begun: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began
