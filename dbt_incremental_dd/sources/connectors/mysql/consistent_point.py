"""The one position in a server's log up to which a run reads all its tables: the log's end, or the place of a
snapshot as of which tables are copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import (
    ConsistentPoint,
    PointMaker,
    Stream,
    TableRequest,
)
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError
from dbt_incremental_dd.sources.connectors.database_log.last_commit import POSITION, LastCommit
from dbt_incremental_dd.sources.connectors.database_log.spool import Spool
from dbt_incremental_dd.sources.connectors.mysql import copying, server
from dbt_incremental_dd.sources.connectors.mysql.connection import (
    TABLE_CHANGED,
    Address,
    MysqlError,
    connected,
    told,
)
from dbt_incremental_dd.sources.connectors.mysql.server import OFFSET_BITS, Place, file_number, place, position_text
from dbt_incremental_dd.sources.connectors.mysql.spec import MysqlSpec
from dbt_incremental_dd.sources.connectors.mysql.stream import Followed, follow, lost
from dbt_incremental_dd.sources.connectors.mysql.tables import MysqlTable, describe
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

_ANEW = "remove its folder under state_root, then run its models with --full-refresh"


def make(
    storage: Storage, address: Address, requests: Sequence[TableRequest[MysqlSpec]], upto: int | None = None
) -> ConsistentPoint:
    """The point for these sources, as ``PointMaker`` has it. Raises MysqlError where nothing of the server can be
    read."""
    with connected(address) as connection:
        return _Making(storage, address, connection, requests, upto).make()


class _Making(PointMaker[MysqlSpec, MysqlTable]):
    def __init__(
        self,
        storage: Storage,
        address: Address,
        connection: Connection,
        requests: Sequence[TableRequest[MysqlSpec]],
        upto: int | None,
    ) -> None:
        super().__init__(requests, upto)
        self._storage = storage
        self._address = address
        self._connection = connection
        self._server = server.server(connection)
        self._stem = server.end(connection).stem
        self._began: dict[int, int] = {}
        """When files of the log were begun, by their numbers."""

    def _begin(self) -> None:
        sizes = {Place(file, 0).position: size for file, size in server.files(self._connection).items()}
        for name, one in self._requests.items():
            progress = one.last.progress
            if not progress:
                continue
            begin = one.last.position >> OFFSET_BITS << OFFSET_BITS
            if progress["server"] != self._server.id or progress["log"] != self._stem:
                self._errors[name] = MysqlError(
                    "its table was of another server so far, or the log had another name",
                    f"Set options.host back, or take it in anew: {_ANEW}.",
                )
            elif one.last.position < min(sizes, default=0):
                self._again.add(name)
                file = place(self._stem, one.last.position).file
                self._notes[name] = (
                    f"copied again: the server has purged {file}, from which on it was to be read; "
                    "binlog_expire_logs_seconds says how long it keeps its log"
                )
            elif one.last.position > begin + sizes.get(begin, -1):
                self._errors[name] = lost(f"the log ends before {position_text(one.last.position)}")

    def _described(self, request: TableRequest[MysqlSpec]) -> MysqlTable:
        with told():
            return describe(self._connection, request.spec.table_name, request.declared)

    def _mark(self, table: MysqlTable) -> list[Any]:
        return table.shape

    def _end(self) -> int:
        return server.end(self._connection).position

    def _copied(self, names: Sequence[str], tables: Mapping[str, MysqlTable], spools: dict[str, Spool]) -> int:
        with connected(self._address) as connection:
            point = server.snapshot(connection, self._server)
            reached("snapshot: made")
            for name in names:
                try:
                    with told():
                        spools[name] = copying.copied(connection, self._storage, tables[name])
                except MysqlError as error:
                    if error.code != TABLE_CHANGED:  # otherwise there is another attempt
                        raise
                except DatabaseError as error:  # of its values; the others are fine
                    self._errors[name] = error
                reached("table: copied")
        self._began_of(point)
        return point.position

    def _followed(self, tables: Mapping[str, MysqlTable], known: Mapping[str, LastCommit], position: int) -> Stream:
        followed = {
            name: Followed(table, known[name].position, known[name].progress["began"]) for name, table in tables.items()
        }
        start = min(one.position for one in followed.values())
        if start >= position:  # nothing has happened since
            self._began |= {file_number(one.position): one.began for one in followed.values()}
            return follow(self._storage, (), followed, position).stream
        events = server.events(self._address, self._server, place(self._stem, start), position)
        with closing(events):
            found = follow(self._storage, events, followed, position)
        self._began |= found.began
        for name, why in found.reasons.items():
            self._notes[name] = f"copied again: {why}"
        return found.stream

    def _progress(self, position: int, mark: list[Any]) -> dict[str, Any]:
        return {
            POSITION: position,
            "log": self._stem,
            "began": self._began_of(place(self._stem, position)),
            "server": self._server.id,
            "marks": mark,
        }

    def _began_of(self, point: Place) -> int:
        number = file_number(point.position)
        if number not in self._began:
            self._began[number] = server.began(self._address, self._server, point.file)
        return self._began[number]
