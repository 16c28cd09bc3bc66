"""Connector ``postgres``: a table's rows at first, then what the server's log tells of them.

A table's progress is a position in the log, committed with the updates. Nothing is consumed from the slot when it is
read; at a later run's beginning the slot is advanced to where the last of its followers is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from dbt_incremental_dd.sources.connectors.database_log import polling
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import ConsistentPoint, TableRequest
from dbt_incremental_dd.sources.connectors.postgres import slots
from dbt_incremental_dd.sources.connectors.postgres.connection import connect, parameters, told
from dbt_incremental_dd.sources.connectors.postgres.consistent_point import Feed, make
from dbt_incremental_dd.sources.connectors.postgres.spec import PostgresSpec
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

_QUIET = 16 << 20
"""Bytes of log without changes of a table, after which its progress is stored all the same: the server keeps them."""
_INTERVAL = 0.2

SPEC = PostgresSpec


class _Log:
    kind = PostgresSpec

    def identity(self, storage: Storage, spec: PostgresSpec) -> Hashable:
        """The url, which has a password, as its hash."""
        feed = _feed(storage, spec)
        return "postgres", hashlib.sha256(feed.url.encode()).hexdigest(), feed.slot, feed.publication

    def make(
        self, storage: Storage, spec: PostgresSpec, requests: Sequence[TableRequest[PostgresSpec]], upto: int | None
    ) -> ConsistentPoint:
        """The point for the sources."""
        return make(_feed(storage, spec), requests, upto)

    def position_text(self, position: int) -> str:
        """As PostgreSQL writes it."""
        return slots.lsn_text(position)

    def is_far(self, since: int, position: int) -> bool:
        """The server keeps the log from the slot on."""
        return position - since >= _QUIET


def poll_interval(spec: PostgresSpec) -> float:
    """Seconds between polls."""
    return _INTERVAL


def poll(request: PollRequest[PostgresSpec]) -> PollResult | None:
    """What has happened to the table since it was taken in last, up to the run's position in the log."""
    return polling.poll(_Log(), request)


def _feed(storage: Storage, spec: PostgresSpec) -> Feed:
    url = spec.options["url"]
    database = parameters(url).get("dbname", "")
    root = storage.root if "://" in storage.root else os.path.abspath(storage.root)
    own = f"dd_{hashlib.sha256(f'{root} {database}'.encode()).hexdigest()[:12]}"
    return Feed(storage, url, spec.options.get("slot", own), spec.options.get("publication", own))


def _connected(url: str) -> Connection:
    with told(url):
        return connect(url)


def _end(url: str, connection: Connection) -> int:
    with told(url):
        return slots.flushed(connection)


_LOG_ENDS = polling.LogEnds(_connected, _end)


def change_token(storage: Storage, spec: PostgresSpec) -> Hashable:
    """Where the server's log ends. Raises OSError where it cannot be reached."""
    return _LOG_ENDS.at(spec.options["url"])
