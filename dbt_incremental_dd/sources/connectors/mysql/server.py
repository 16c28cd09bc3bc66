"""The server's side of following: whether its log can be followed, its files, and where it ends.

A position is one whole number, so that positions can be compared: the number of the log's file, and the offset in it.
GTIDs would outlive a change of servers, but those of several domains have no order, and only MariaDB finds the place
of one in its files.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.sources.connectors.mysql import binlog
from dbt_incremental_dd.sources.connectors.mysql.connection import LOCKED, Address, MysqlError, connected, rows, told

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.mysql.connection import Connection

_VARIABLES = (
    "version",
    "log_bin",
    "server_id",
    "server_uid",
    "server_uuid",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_value_options",
    "binlog_checksum",
)
_OLDEST = {True: (10, 5), False: (8, 0)}
_LIMITS = {True: "max_statement_time", False: "max_execution_time"}
"""Of a query's time, which a copy may take longer than; by whether the server is MariaDB."""
OFFSET_BITS = 32
_PATIENCE = 30.0
"""Seconds to wait for what the server has told as the end of its log."""
_LOCK_SECONDS, _LOCK_PATIENCE = 2, 120.0
"""For which writing may be held up at a time, and in which it must have been stopped."""


@dataclass(frozen=True)
class Server:
    """``id``: which server it is, as long as it lives; ``has_checksum``: whether events have one."""

    id: str
    is_mariadb: bool
    has_checksum: bool


@dataclass(frozen=True)
class Place:
    """A file of the log and an offset in it."""

    file: str
    offset: int

    @property
    def stem(self) -> str:
        """The file's name without its number."""
        return self.file.rpartition(".")[0]

    @property
    def position(self) -> int:
        """As one number. Raises MysqlError for an offset that events cannot have."""
        if self.offset >> OFFSET_BITS:
            raise MysqlError(f"{self.file} of the log is larger than 4 GiB", "Run: FLUSH LOGS")
        return int(self.file.rpartition(".")[2]) << OFFSET_BITS | self.offset


def file_number(position: int) -> int:
    """The number of the log's file."""
    return position >> OFFSET_BITS


def place(stem: str, position: int) -> Place:
    """The position as the server has it."""
    return Place(f"{stem}.{file_number(position):06}", position & ((1 << OFFSET_BITS) - 1))


def position_text(position: int) -> str:
    """The position for people."""
    return f"file {file_number(position)} of the log, offset {position & ((1 << OFFSET_BITS) - 1)}"


def server(connection: Connection) -> Server:
    """The server. Raises MysqlError where its log cannot be followed."""
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    found = {
        name.lower(): value for name, value in rows(connection, f"SHOW VARIABLES WHERE Variable_name IN ({names})")
    }
    text = found["version"]
    is_mariadb = "mariadb" in text.lower()
    version = _version(text)
    if version < _OLDEST[is_mariadb]:
        raise MysqlError(f"the server is of version {text}", "MariaDB 10.5 or MySQL 8.0 or newer is needed.")
    _require_log(found)
    identity = found.get("server_uid") or found.get("server_uuid") or f"server_id {found['server_id']}"
    return Server(identity, is_mariadb, found.get("binlog_checksum") == "CRC32")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.removeprefix("5.5.5-").split("-")[0].split(".") if part.isdigit())


def _require_log(found: dict[str, Any]) -> None:
    if found["log_bin"] != "ON":
        raise MysqlError(
            "the server writes no binary log",
            "Set log_bin and a server_id in its configuration, and restart it.",
        )
    if found["server_id"] == "0":
        raise MysqlError(
            "the server has no server_id", "Run: SET GLOBAL server_id = 1; and put it in its configuration."
        )
    wanted = {"binlog_format": "ROW", "binlog_row_image": "FULL"}
    if "binlog_row_value_options" in found:
        wanted["binlog_row_value_options"] = ""
    for name, value in wanted.items():
        if found.get(name, "").upper() != value:
            raise MysqlError(
                f"the server's {name} is {found.get(name)}, so its log does not have whole rows",
                f"Run: SET GLOBAL {name} = '{value}'; put it in its configuration, and let its clients connect again.",
            )


def end(connection: Connection) -> Place:
    """Where the log ends."""
    info = connection.get_server_info()
    is_new = "mariadb" not in info.lower() and _version(info) >= (8, 2)
    file, offset, *_ = rows(connection, "SHOW BINARY LOG STATUS" if is_new else "SHOW MASTER STATUS")[0]
    return Place(file, int(offset))


def files(connection: Connection) -> dict[str, int]:
    """The log's files, oldest first, and how long each is."""
    return {file: int(size) for file, size, *_ in rows(connection, "SHOW BINARY LOGS")}


def snapshot(connection: Connection, server: Server) -> Place:
    """Begins a transaction, and the place in the log as of which it sees all tables.

    MariaDB tells it of its consistent snapshot. Otherwise writing is stopped for the moment in which it begins.
    """
    connection.query(f"SET SESSION {_LIMITS[server.is_mariadb]} = 0")
    connection.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    if server.is_mariadb:
        connection.query(begin)
        found = dict(rows(connection, "SHOW STATUS LIKE 'Binlog_snapshot_%'"))
        return Place(found["Binlog_snapshot_file"], int(found["Binlog_snapshot_position"]))
    _lock(connection)
    try:
        connection.query(begin)
        return end(connection)
    finally:
        connection.query("UNLOCK TABLES")


def _lock(connection: Connection) -> None:
    """Stops writing. That waits for statements that run for long, and others' writes wait with it: so it is tried for a
    few seconds at a time, between which these go on, but for those to tables that such a statement reads."""
    deadline = time.monotonic() + _LOCK_PATIENCE
    connection.query(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}")
    while True:
        try:
            with told():
                connection.query("FLUSH TABLES WITH READ LOCK")
        except MysqlError as error:
            if error.code != LOCKED or time.monotonic() > deadline:
                raise
            connection.query("UNLOCK TABLES")  # some of the lock is there all the same
            time.sleep(_LOCK_SECONDS)
        else:
            break
    connection.query(f"SET SESSION lock_wait_timeout = {_LOCK_PATIENCE:.0f}")


def events(address: Address, server: Server, start: Place, upto: int = 0) -> Generator[binlog.Event, None, None]:
    """The log from there on, up to where it ends at the moment, by a connection of its own. Where that is before
    ``upto``, which the server has told as the end, it is about to show what is between."""
    # Two readers with one number would end each other; servers have small ones.
    number = random.SystemRandom().randrange(1 << 31, 1 << 32)
    deadline = time.monotonic() + _PATIENCE
    while True:
        with connected(address) as connection:
            for event in binlog.events(
                connection, start.file, start.offset, server_id=number, checksum=server.has_checksum
            ):
                yield event
                if event.kind == binlog.ROTATE:
                    start = Place(*binlog.rotation(event.body))
                elif event.end:
                    start = Place(event.file, event.end)
        if start.position >= upto or time.monotonic() > deadline:
            return
        time.sleep(0.02)


def began(address: Address, server: Server, file: str) -> int:
    """When a file of the log was begun, in seconds since 1970: a log that was reset has another one of that name."""
    with closing(events(address, server, Place(file, 4))) as found:
        return next(event.began for event in found if event.kind == binlog.FORMAT)
