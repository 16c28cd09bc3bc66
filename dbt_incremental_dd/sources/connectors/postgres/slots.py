"""The server's side of following: whether it can be followed, publications, slots, and where they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError, connected
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable, quote_identifier

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

T = TypeVar("T")

_OLDEST = 130000
_PATIENCE = 120.0
"""Seconds to wait for transactions that are open when a consistent point is sought."""
_IN_USE = 15.0
"""Seconds to wait for another reader of the slot."""
_SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('wal_level'), pg_is_in_recovery(),
(SELECT system_identifier::text FROM pg_control_system()), current_database()::text,
current_setting('wal_block_size')::int
"""
_SLOT = """
SELECT plugin, database, wal_status, confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s
"""
_PUBLICATION = """
SELECT oid::bigint, pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot FROM pg_publication
WHERE pubname = %s
"""
_MEMBER = """
SELECT (SELECT r.oid::bigint FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = %(oid)s),
EXISTS (SELECT FROM pg_publication_tables t WHERE t.pubname = p.pubname AND t.schemaname = %(schema)s
        AND t.tablename = %(name)s)
FROM pg_publication p WHERE p.pubname = %(publication)s
"""
_PARTIAL = """
SELECT prattrs IS NOT NULL OR prqual IS NOT NULL FROM pg_publication_rel
WHERE prrelid = %s AND prpubid = (SELECT oid FROM pg_publication WHERE pubname = %s)
"""


@dataclass(frozen=True)
class Server:
    """Which server and database it is, for good."""

    system: str
    database: str
    version: int
    block: int


@dataclass(frozen=True)
class Slot:
    """``confirmed``: transactions that ended before it are not delivered any more."""

    confirmed: int


def lsn(text: str) -> int:
    """A position in the log as a number."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(position: int) -> str:
    """The position as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def server(connection: Connection) -> Server:
    """The server. Raises PostgresError where its log cannot be followed."""
    version, level, is_standby, system, database, block = _one(connection, _SERVER)
    if version < _OLDEST:
        raise PostgresError(f"the server is of version {version // 10000}", "PostgreSQL 13 or newer is needed.")
    if level != "logical":
        raise PostgresError(
            f"the server's wal_level is {level}, so its log does not tell of rows",
            "Run: ALTER SYSTEM SET wal_level = logical; and restart the server.",
        )
    if is_standby:
        raise PostgresError("the server is a standby", "Give the primary's address in options.url.")
    return Server(system, database, version, block)


def flushed(connection: Connection) -> int:
    """Up to where the log is on disk."""
    return lsn(str(_one(connection, "SELECT pg_current_wal_flush_lsn()::text")[0]))


def slot_state(connection: Connection, name: str, server: Server) -> Slot | None:
    """The slot; None where there is none. Raises PostgresError where it is another's, or has lost the log."""
    found = connection.execute(_SLOT, (name,)).fetchone()
    if found is None:
        return None
    plugin, database, status, confirmed = found
    if plugin != "pgoutput" or database != server.database:
        raise PostgresError(
            f"replication slot {name} is another's: plugin {plugin}, database {database}",
            "Give the source a slot of its own, options.slot.",
        )
    if status == "lost" or confirmed is None:
        raise PostgresError(
            f"the server has removed log that replication slot {name} had still to deliver (wal_status lost)",
            f"Raise max_slot_wal_keep_size, run SELECT pg_drop_replication_slot('{name}'), and take its sources in "
            "anew: remove their folders under state_root, then run their models with --full-refresh.",
        )
    return Slot(lsn(str(confirmed)))


@contextmanager
def consistent_point(url: str, name: str, *, is_temporary: bool) -> Iterator[tuple[int, str]]:
    """Makes a slot; its first position, and the exported snapshot of all that is before, valid inside."""
    kind = " TEMPORARY" if is_temporary else ""
    command = f"CREATE_REPLICATION_SLOT {quote_identifier(name)}{kind} LOGICAL pgoutput EXPORT_SNAPSHOT"
    with connected(url, lock_timeout=_PATIENCE, replication="database") as connection:
        found = connection.execute(command).fetchone()
        assert found is not None
        yield lsn(str(found[1])), str(found[2])


def patiently(act: Callable[[], T]) -> T:
    """Does it again for some seconds where the slot is in use: another run may be reading it."""
    import psycopg

    deadline = time.monotonic() + _IN_USE
    while True:
        try:
            return act()
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def advance(connection: Connection, name: str, position: int) -> None:
    """Lets the server forget what is before."""
    connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", (name, lsn_text(position)))


def publish(connection: Connection, name: str, tables: Sequence[PostgresTable]) -> None:
    """Makes the publication, or adds tables to it. Raises PostgresError with the SQL to run where the user may not."""
    found = connection.execute(_PUBLICATION, (name,)).fetchone()
    if found is None:
        how = "WITH (publish_via_partition_root = true)"
        made = _run(connection, f"CREATE PUBLICATION {quote_identifier(name)} FOR {_listed(tables)} {how}")
        return None if made else publish(connection, name, tables)
    _, is_whole, _ = found
    if not is_whole:
        raise PostgresError(
            f"publication {name} leaves out some kinds of changes",
            f"Run: ALTER PUBLICATION {quote_identifier(name)} SET (publish = 'insert, update, delete, truncate')",
        )
    missing = [table for table in tables if not _is_member(connection, name, table)]
    if missing:
        with suppress(PostgresError):  # the others are fine; what is missing is told of each table by itself
            _run(connection, f"ALTER PUBLICATION {quote_identifier(name)} ADD {_listed(missing)}")
    return None


def membership(connection: Connection, server: Server, name: str, table: PostgresTable) -> list[Any]:
    """What stays the same as long as the table is in the publication. Raises PostgresError where not all of it is."""
    found = connection.execute(_PUBLICATION, (name,)).fetchone()
    own = connection.execute(_MEMBER, _names(name, table)).fetchone()
    if found is None or own is None or not own[1]:
        raise PostgresError(
            f"{table.sql} is not in publication {name} by itself",
            f"Run: ALTER PUBLICATION {quote_identifier(name)} ADD TABLE {table.sql}; "
            "of a partitioned table and its partitions only one can be there.",
        )
    if table.is_partitioned and not found[2]:
        raise PostgresError(
            f"publication {name} has the partitions of {table.sql}, not the table",
            f"Run: ALTER PUBLICATION {quote_identifier(name)} SET (publish_via_partition_root = true)",
        )
    if server.version >= 150000:
        partial = connection.execute(_PARTIAL, (table.oid, name)).fetchone()
        if partial is not None and partial[0]:
            raise PostgresError(
                f"publication {name} has a row filter or a list of columns for {table.sql}",
                "Publish the whole table, in a publication of its own where need be (options.publication).",
            )
    return [found[0], own[0]]


def _is_member(connection: Connection, name: str, table: PostgresTable) -> bool:
    found = connection.execute(_MEMBER, _names(name, table)).fetchone()
    return bool(found and (found[1] or found[0]))


def _names(publication: str, table: PostgresTable) -> dict[str, Any]:
    return {"oid": table.oid, "schema": table.schema, "name": table.name, "publication": publication}


def _listed(tables: Sequence[PostgresTable]) -> str:
    # Tables that inherit are tables of their own; partitions are their table's.
    return "TABLE " + ", ".join(table.sql if table.is_partitioned else f"ONLY {table.sql}" for table in tables)


def _run(connection: Connection, command: str) -> bool:
    """Whether it did it; False where another process was first."""
    import psycopg

    try:
        connection.execute(command)
    except psycopg.errors.DuplicateObject:
        return False
    except psycopg.errors.InsufficientPrivilege as error:
        words = str(error).splitlines()[0]
        raise PostgresError(f"the publication cannot be made: {words}", f"Have its owner run: {command}") from None
    return True


def _one(connection: Connection, query: str) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()
    assert found is not None
    return tuple(found)
