"""One in-memory DuckDB for all SELECTs over the collections of a state root. It can read their data files and nothing
else, so that it is safe even if it gets a statement that should have been refused."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from dbt_incremental_dd.core.errors import ConditionError, QueryCanceled, QueryError, StateError
from dbt_incremental_dd.core.rights import EVERYTHING, Rights
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.duck.sql import identifier, literal, relation_name
from dbt_incremental_dd.query.as_of import split_as_of
from dbt_incremental_dd.query.files import PROTOCOL, StoredFiles
from dbt_incremental_dd.query.relation import contents_sql, empty_sql, rows_sql
from dbt_incremental_dd.trace.arrow_reader import log_of
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.untrusted.limits import BY_TIMEOUT, Limits, StatementRun, Watchdog
from dbt_incremental_dd.untrusted.parsed_select import ParsedSelect, parse_select
from dbt_incremental_dd.untrusted.row_condition import safe_condition
from dbt_incremental_dd.untrusted.sized import macros

logger = logging.getLogger(__name__)
BATCH_ROWS = 10_000
"""Rows in a record batch."""


@dataclass(frozen=True)
class QueryResult:
    """The result of a statement. ``as_of``: the time it was read as of; None if it reads no collection."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    as_of: Time | None
    interrupt: Callable[[], None] = lambda: None
    """Interrupts the computation of the batches, from any thread."""

    def close(self) -> None:
        """Stops the computation. Call it only while no batch is being computed."""
        if isinstance(self.batches, Generator):
            self.batches.close()


class QueryEngine:
    """A view ``schema.identifier`` for each collection that ``rights`` let read, of the rows that they let read: there
    is nothing else in its DuckDB. Thread-safe; DuckDB is opened by the first statement. ``watchdog``: by default one of
    its own."""

    def __init__(
        self,
        storage: Storage,
        limits: Limits | None = None,
        rights: Rights = EVERYTHING,
        watchdog: Watchdog | None = None,
    ) -> None:
        root = storage.root if not storage.is_local else os.path.abspath(storage.root)
        self._storage = replace(storage, root=root)
        self.limits = limits or Limits()
        self.rights = rights
        self._watchdog = watchdog or Watchdog(self.limits.bytes)
        self._views: dict[str, str] = {}
        self._lock = threading.Lock()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """Call it with the lock held."""
        return _open(self._storage, self.limits, self.rights)

    def close(self) -> None:
        """Closes DuckDB."""
        with self._lock:
            if "_connection" in self.__dict__:
                self._connection.close()

    def new_run(self, seconds: float | None) -> StatementRun:
        """A run of one statement, limited to ``seconds`` of computation and to the engine's own limit."""
        limits = [one for one in (seconds, self.limits.seconds) if one is not None]
        return StatementRun(self._watchdog, min(limits, default=None))

    def select(self, sql: str, parameters: Sequence[Any], as_of: Time | None, run: StatementRun) -> QueryResult:
        """As ``Session.select``."""
        text, own = split_as_of(sql)
        select = parse_select(text)
        cursor, t = self._begin(select, own if own is not None else as_of, run)
        try:
            with _translating_errors(run), run.computing(cursor):
                reader = cursor.sql(text, params=list(parameters) or None).to_arrow_reader(BATCH_ROWS)
        except BaseException:
            cursor.close()
            raise
        return QueryResult(reader.schema, _batches(reader, cursor, run), t, run.interrupt)

    def collections_of(self, sql: str) -> tuple[str, ...]:
        """The collections that a SELECT reads. Raises QueryError unless it is one read-only SELECT."""
        return self._collections_in(parse_select(sql), self._stores())

    def _begin(
        self, select: ParsedSelect, as_of: Time | None, run: StatementRun
    ) -> tuple[duckdb.DuckDBPyConnection, Time | None]:
        """A cursor in a transaction in which all collections are read as of one time, whatever other statements read;
        and that time."""
        with self._lock:
            names = self._collections_in(select, self._refresh().values())
            # A view opens its files when it is created.
            with _translating_errors(run):
                t = self._create_views(names, as_of)
            cursor = self._connection.cursor()
            cursor.begin()
        return cursor, t

    def _collections_in(self, select: ParsedSelect, stores: Iterable[CollectionStore]) -> tuple[str, ...]:
        known = [place.name for place in stores]
        found = []
        for schema, table in select.tables:
            matching = [name for name in known if _matches(name, schema, table)]
            if not schema and len(matching) > 1:
                raise QueryError(f"{table} may be any of {', '.join(matching)}", "Give its full name.")
            if not matching and (schema or table not in select.defined or "/" in table):
                named = f"{schema}.{table}" if schema else table
                remedy = f"Known collections: {', '.join(known) or 'none'}."
                raise QueryError(f"Table with name {named} does not exist", remedy)
            found += matching
        return tuple(dict.fromkeys(found))

    def _stores(self) -> list[CollectionStore]:
        return [place for place in self._storage.collections(own=True) if self.rights.may_read(place.name)]

    def _refresh(self) -> dict[str, CollectionStore]:
        """Updates the catalog: every collection has a view with its columns, and removed ones have none."""
        known = {place.name: place for place in self._stores()}
        for name in [name for name in self._views if name not in known]:
            del self._views[name]
            self._connection.execute(f"DROP VIEW IF EXISTS {relation_name(name)}")
            self._create_short_view(name.rpartition(".")[2])
        for name, place in known.items():
            # A damaged collection raises only in statements that read it.
            with contextlib.suppress(StateError):
                if name not in self._views and (log := place.log()) is not None:
                    self._create_view(name, empty_sql(columns_of(place, log)))
        return known

    def _create_view(self, name: str, sql: str) -> None:
        """Makes the collection's view run this SQL."""
        if self._views.get(name) == sql:
            return
        schema, _, table = name.rpartition(".")
        if schema:
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
        self._connection.execute(f"CREATE OR REPLACE VIEW {relation_name(name)} AS {sql}")
        self._views[name] = sql
        self._create_short_view(table)

    def _create_short_view(self, table: str) -> None:
        """Creates a view named by the last part of a collection's name, if no other collection shares it."""
        having = [name for name in self._views if name.rpartition(".")[2] == table]
        if len(having) == 1 and having[0] not in (table, f"main.{table}"):
            self._connection.execute(
                f"CREATE OR REPLACE VIEW main.{identifier(table)} AS FROM {relation_name(having[0])}"
            )
        elif table not in having:
            self._connection.execute(f"DROP VIEW IF EXISTS main.{identifier(table)}")

    def _create_views(self, names: Sequence[str], as_of: Time | None) -> Time | None:
        """Makes the collections' views read as of one time, which is returned."""
        logs = {name: log_of(self._storage.collection(name)) for name in names}
        if not logs:
            return as_of
        t = min(log.frontiers.last for log in logs.values()) if as_of is None else as_of
        for name, log in logs.items():
            log.frontiers.require(t, name)
        for name, log in logs.items():
            sql = self._contents(self._storage.collection(name), log, t)
            with _hiding_conditions(name, self.rights):
                self._create_view(name, sql)
        return t

    def _contents(self, place: CollectionStore, log: Log, t: Time) -> str:
        below = log.uri.removeprefix(f"{self._storage.root}/")
        schema = columns_of(place, log)
        contents = contents_sql(log, schema, t, f"{PROTOCOL}://{below}")
        condition = self.rights.condition(place.name)
        return contents if condition is None else rows_sql(contents, safe_condition(condition, schema))


def _open(storage: Storage, limits: Limits, rights: Rights) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
        "TimeZone": "UTC",
        "memory_limit": f"{limits.bytes}B",
        # Statements that do not fit into memory fail: nothing is spilled to disk.
        "temp_directory": "",
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    connection.register_filesystem(StoredFiles(storage, rights))
    connection.execute("SET autoload_known_extensions = false")
    # A transaction sees the views as of its beginning.
    connection.execute("SET immediate_transaction_mode = true")
    # A limit that excludes no row then passes rows on as they come.
    connection.execute(f"SET preserve_insertion_order = {str(not rights.has_conditions).lower()}")
    for statement in macros():
        connection.execute(statement)
    connection.execute(f"SET allowed_directories = [{literal(f'{PROTOCOL}://')}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
    connection.execute("SET lock_configuration = true")
    return connection


def _batches(
    reader: pa.RecordBatchReader, cursor: duckdb.DuckDBPyConnection, run: StatementRun
) -> Iterator[pa.RecordBatch]:
    try:
        while True:
            with _translating_errors(run), run.computing(cursor):
                batch = next(reader, None)
            if batch is None:
                return
            yield batch
    finally:
        cursor.close()


@contextlib.contextmanager
def _translating_errors(run: StatementRun) -> Iterator[None]:
    """Raises errors of DuckDB in the block as QueryError, or as QueryCanceled if the run was interrupted."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if run.reason is not None:
            raise QueryCanceled(run.reason, _REMEDY if run.reason == BY_TIMEOUT else "") from error
        message = str(error).strip()
        if "Traceback (most recent call last)" in message:
            # raised in the file system, which is written in Python
            raise StateError(
                f"a data file cannot be read: {next((x for x in message.splitlines() if 'Error: ' in x), 'damaged')}",
                _DAMAGED,
            ) from error
        raise QueryError(message) from error


@contextlib.contextmanager
def _hiding_conditions(name: str, rights: Rights) -> Iterator[None]:
    """Raises an error of a view with a condition as one that tells nothing of the condition."""
    try:
        yield
    except duckdb.Error as error:
        if rights.condition(name) is None or "Traceback (most recent call last)" in str(error):
            raise
        logger.warning("the condition on rows of %s cannot be applied: %s", name, error)
        raise ConditionError(name) from None


_DAMAGED = "`dbt-dd status` shows details; `dbt run --full-refresh` rebuilds the collection."
_REMEDY = "Ask for less, or raise the server's --statement-timeout."


def _matches(name: str, schema: str, table: str) -> bool:
    own, _, last = name.rpartition(".")
    return last == table and (not schema or own == schema)
