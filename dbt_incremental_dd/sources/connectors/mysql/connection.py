"""Connections to a server, and its errors as what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError

if TYPE_CHECKING:
    Connection = Any

_SECONDS = 5
"""Until a server that does not answer counts as unreachable."""
_SILENCE = 600
"""Seconds in which a server that is read from says nothing, until the connection counts as lost."""
_SESSION = (
    "SET SESSION sql_mode = '', time_zone = '+00:00', net_write_timeout = 600"
    "/*!80030 , show_gipk_in_create_table_and_information_schema = ON */"
)
"""On which the text of values depends, and in MySQL whether it shows all columns that the log has."""
_DENIED = (1044, 1045, 1142, 1143, 1227, 1370)
_LOST = (1053, 1077, 1079, 1159, 1161, 1184, 1317, 1927, 2006, 2013, 2014, 2055)
_HERE = ("localhost", "127.0.0.1", "::1")
LOCKED = 1205
"""Something was locked by others for too long."""
TABLE_CHANGED = 1412
"""A table is another one than that of the transaction's snapshot."""


class MysqlError(DatabaseError):
    """What is wrong with a server of MySQL's kind, its log or a table, and what to do; ``code`` is the server's, or
    0."""

    def __init__(self, message: str, remedy: str, code: int = 0) -> None:
        super().__init__(message, remedy)
        self.code = code


@dataclass(frozen=True)
class Address:
    """Where a server is, and as whom it is read."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    ssl_ca: str | None = None


def require_client() -> None:
    """Raises ConfigError where PyMySQL is not installed."""
    try:
        import pymysql  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "connector mysql needs PyMySQL, which is not installed",
            "Install it: pip install 'dbt-incremental-dd[mysql]'.",
        ) from error


def connect(address: Address) -> Connection:
    """A connection in autocommit mode, to be used inside ``told``. Raises MysqlError where there is none within
    seconds."""
    require_client()
    import pymysql

    secured: dict[str, Any] = {"ssl_disabled": address.host in _HERE}  # otherwise if the server has TLS
    if address.ssl_ca:
        secured = {"ssl_ca": address.ssl_ca, "ssl_verify_cert": True, "ssl_verify_identity": True}
    try:
        connection = pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password.encode(),  # PyMySQL would make Latin-1 of it
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=_SECONDS,
            read_timeout=_SILENCE,
            write_timeout=_SILENCE,
            conv={},  # values stay text
            **secured,
        )
    except (pymysql.MySQLError, OSError, RuntimeError) as error:  # the last one where cryptography is not installed
        code, words = _parts(error)
        raise MysqlError(
            f"the server at {address.host}:{address.port} cannot be reached: {words}",
            "Check host, port, user and password under options, and that it runs.",
            code,
        ) from None
    with told():
        connection.query(_SESSION)
    return connection


@contextmanager
def connected(address: Address) -> Iterator[Connection]:
    """A connection that is closed at the end, also in the middle of a result; what the server refuses is MysqlError."""
    connection = connect(address)
    try:
        with told():
            yield connection
    finally:
        connection._force_close()


@contextmanager
def told() -> Iterator[None]:
    """Makes errors of the client's MysqlError."""
    import pymysql

    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        raise _mysql_error(*_parts(error)) from None


def rows(connection: Connection, query: str, *given: Any) -> list[tuple[Any, ...]]:
    """A query's rows; values are text."""
    with connection.cursor() as cursor:
        cursor.execute(query, given or None)
        return [tuple(row) for row in cursor.fetchall()]


def _parts(error: Exception) -> tuple[int, str]:
    code, *words = error.args if len(error.args) > 1 else (0, str(error) or type(error).__name__)
    return (code if isinstance(code, int) else 0), str(words[0]).splitlines()[0]


def _mysql_error(code: int, words: str) -> MysqlError:
    if code in _DENIED:
        return MysqlError(
            words,
            "Give the user of options.user what it needs: GRANT SELECT on the tables, and "
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.*; "
            "a server without consistent snapshots of its log (MySQL) also needs RELOAD.",
            code,
        )
    if code == 1236:
        return MysqlError(
            f"the log cannot be read: {words}",
            "Run again: if files were purged, tables are copied. If it stays so, the log was reset: take the source in "
            "anew, by removing its folder under state_root and running its models with --full-refresh.",
            code,
        )
    if code in (LOCKED, 3572):
        return MysqlError(
            "the tables were locked for too long for the log to be read from a consistent point",
            "Find the statement or transaction (SHOW PROCESSLIST), end it, and run again.",
            code,
        )
    if code in _LOST or code == 0:
        return MysqlError(
            f"the connection was lost: {words}", "Run again when the server is back; nothing is lost.", code
        )
    return MysqlError(f"the server refuses: {words}", "Correct what it names, and run again.", code)
