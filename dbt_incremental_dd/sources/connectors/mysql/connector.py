"""Connector ``mysql``: a table's rows at first, then what the server's binary log tells of them.

A table's progress is a position in the log, committed with the updates. The server does not know of it: how long it
keeps its log is its own matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from dbt_incremental_dd.sources.connectors.database_log import polling
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import ConsistentPoint, TableRequest
from dbt_incremental_dd.sources.connectors.mysql import server
from dbt_incremental_dd.sources.connectors.mysql.connection import Address, connect, told
from dbt_incremental_dd.sources.connectors.mysql.consistent_point import make
from dbt_incremental_dd.sources.connectors.mysql.spec import MysqlSpec
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

_QUIET = 16 << 20
"""Bytes of log without changes of a table, after which its progress is stored all the same: what is before may be
purged, and need not be read again."""
_INTERVAL = 0.2

SPEC = MysqlSpec


class _Log:
    kind = MysqlSpec

    def identity(self, storage: Storage, spec: MysqlSpec) -> Hashable:
        """The server and its user, with the password."""
        return "mysql", spec.address

    def make(
        self, storage: Storage, spec: MysqlSpec, requests: Sequence[TableRequest[MysqlSpec]], upto: int | None
    ) -> ConsistentPoint:
        """The point for the sources."""
        return make(storage, spec.address, requests, upto)

    def position_text(self, position: int) -> str:
        """For people."""
        return server.position_text(position)

    def is_far(self, since: int, position: int) -> bool:
        """Positions in different files are far from each other, too."""
        return position - since >= _QUIET


def poll_interval(spec: MysqlSpec) -> float:
    """Seconds between polls."""
    return _INTERVAL


def poll(request: PollRequest[MysqlSpec]) -> PollResult | None:
    """What has happened to the table since it was taken in last, up to the run's position in the log."""
    return polling.poll(_Log(), request)


def _connected(address: Address) -> Connection:
    return connect(address)


def _end(address: Address, connection: Connection) -> int:
    with told():
        return server.end(connection).position


_LOG_ENDS = polling.LogEnds(_connected, _end)


def change_token(storage: Storage, spec: MysqlSpec) -> Hashable:
    """Where the server's log ends. Raises OSError where it cannot be reached."""
    return _LOG_ENDS.at(spec.address)
