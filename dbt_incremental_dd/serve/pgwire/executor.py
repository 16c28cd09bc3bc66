"""Executes the statements of one connection: they return rows, or change the connection's state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.query.as_of import split_as_of
from dbt_incremental_dd.query.engine import QueryResult
from dbt_incremental_dd.serve.pgwire.catalog import Client, SystemCatalog
from dbt_incremental_dd.serve.pgwire.errors import PgError
from dbt_incremental_dd.serve.pgwire.rows import FetchedRows, QueryRows, RowStream, TableRows, close_shielded
from dbt_incremental_dd.serve.pgwire.settings import Settings
from dbt_incremental_dd.serve.pgwire.statements import (
    Close,
    Copy,
    Declare,
    Fetch,
    Select,
    Set,
    Show,
    Source,
    Statement,
    Subscribe,
    Transaction,
)
from dbt_incremental_dd.serve.pgwire.subscription_rows import subscribe, subscription_schema
from dbt_incremental_dd.serve.pgwire.transaction import NO_TRANSACTION, TransactionState
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.serve.shielded import run_shielded


@dataclass(frozen=True)
class CommandResult:
    """A statement without rows. ``tag``: its command tag; ``warning``: sent before it."""

    tag: str
    warning: PgError | None = None


@dataclass(frozen=True)
class RowsResult:
    """A statement with rows. ``verb``: its tag without the number of rows; ``copy``: the COPY options, if any;
    ``collection`` and ``as_of``: what it subscribes to, and the time that it reads as of, if there is one."""

    verb: str
    rows: RowStream
    copy: Copy | None = None
    collection: str | None = None
    as_of: Time | None = None


@dataclass
class _Cursor:
    """``outlives_transaction``: whether it does not belong to the open transaction."""

    sql: str
    rows: RowStream
    hold: bool
    outlives_transaction: bool


class Executor:
    """Belongs to one event loop, and executes one statement at a time."""

    def __init__(self, reader: Reader, client: Client, settings: Settings) -> None:
        self.transaction = TransactionState()
        self._settings = settings
        self._reader = reader
        self._queries = reader.queries
        settings.set_server_timeout(reader.queries.limits.seconds)
        self._session = reader.session()
        self._catalog = SystemCatalog(reader.database, client)
        self._cursors: dict[str, _Cursor] = {}

    async def execute(self, statement: Statement, sql: str) -> CommandResult | RowsResult:
        """Executes a statement. Raises PgError, DifferentialError, or DuckDB's errors."""
        self.transaction.require(statement)
        if isinstance(statement, Select | Subscribe):
            return await self._rows("SELECT" if isinstance(statement, Select) else "SUBSCRIBE", statement)
        if isinstance(statement, Copy):
            return await self._rows("COPY", statement.source, statement)
        if isinstance(statement, Fetch):
            rows = self._cursor(statement.name).rows
            return RowsResult("FETCH", FetchedRows(rows, statement.count, statement.timeout))
        if isinstance(statement, Show):
            return RowsResult("SHOW", TableRows(self._settings.show(statement.name)))
        if isinstance(statement, Declare):
            return await self._declare(statement, sql)
        if isinstance(statement, Close):
            return await self._close(statement)
        if isinstance(statement, Transaction):
            return await self._transact(statement)
        if isinstance(statement, Set):
            return await self._set(statement)
        return CommandResult("DEALLOCATE ALL" if statement.name is None else "DEALLOCATE")

    async def describe(self, statement: Statement) -> pa.Schema | None:
        """The columns of a statement's rows, without executing it; None if it has none."""
        self.transaction.require(statement)
        if isinstance(statement, Subscribe):
            return await run_shielded(self._reader.run(subscription_schema, self._reader, statement))
        if isinstance(statement, Fetch):
            return self._cursor(statement.name).rows.schema
        if isinstance(statement, Show):
            return self._settings.show(statement.name).schema
        if not isinstance(statement, Select):
            return None
        text, _ = split_as_of(statement.sql)
        answer = await self._query_rows(f"SELECT * FROM ({text}\n) AS described LIMIT 0")
        await answer.close()
        return answer.schema

    def cursor_schema(self, name: str) -> pa.Schema | None:
        """The columns of a cursor; None if there is no cursor of this name."""
        found = self._cursors.get(name)
        return None if found is None else found.rows.schema

    def _interrupt(self) -> None:
        self._session.interrupt()
        self._catalog.interrupt()

    async def _rows(self, verb: str, source: Source, copy: Copy | None = None) -> RowsResult:
        rows, usage = await self._open(source), self._reader.usage
        return RowsResult(verb, rows, copy, usage.collection, usage.as_of)

    async def _open(self, source: Source) -> RowStream:
        if isinstance(source, Subscribe):
            return await subscribe(self._reader, source)
        return await self._query_rows(source.sql)

    async def _query_rows(self, sql: str) -> QueryRows:
        self._session.seconds = self._settings.statement_timeout
        answer = await self._queries.begin(self._interrupt, self._select, sql)
        return QueryRows(self._queries, answer)

    def _select(self, sql: str) -> QueryResult:
        """Called in a query thread. The first read of a transaction fixes the time of the later ones."""
        statements = {name: cursor.sql for name, cursor in self._cursors.items()}
        result = self._catalog.select(sql, statements, self._session.new_run)
        if result is not None:
            return result
        _, own = split_as_of(sql)
        answer = self._session.select(sql, as_of=self.transaction.time)
        self._reader.usage.as_of = answer.as_of
        if self.transaction.is_open and own is None and self.transaction.time is None:
            self.transaction.time = answer.as_of
        return answer

    def _cursor(self, name: str) -> _Cursor:
        if name not in self._cursors:
            raise PgError("34000", f'cursor "{name}" does not exist')
        return self._cursors[name]

    async def _declare(self, statement: Declare, sql: str) -> CommandResult:
        if not self.transaction.is_open and not statement.hold:
            raise PgError(NO_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks", "BEGIN first.")
        if statement.name in self._cursors:
            raise PgError("42P03", f'cursor "{statement.name}" already exists')
        rows = await self._open(statement.source)
        self._cursors[statement.name] = _Cursor(sql, rows, statement.hold, not self.transaction.is_open)
        return CommandResult("DECLARE CURSOR")

    async def _close(self, statement: Close) -> CommandResult:
        if statement.name is None:
            await self._close_cursors(list(self._cursors))
            return CommandResult("CLOSE CURSOR ALL")
        self._cursor(statement.name)
        await self._close_cursors([statement.name])
        return CommandResult("CLOSE CURSOR")

    async def _transact(self, statement: Transaction) -> CommandResult:
        state = self.transaction
        if statement.verb == "BEGIN":
            warning = PgError("25001", "there is already a transaction in progress") if state.is_open else None
            state.begin()
            return CommandResult("BEGIN", warning)
        if statement.verb not in ("COMMIT", "ROLLBACK"):
            state.savepoint(statement)
            return CommandResult("ROLLBACK" if statement.verb == "ROLLBACK TO" else statement.verb)
        warning = None if state.is_open else PgError(NO_TRANSACTION, "there is no transaction in progress")
        tag = "ROLLBACK" if state.status == b"E" else statement.verb
        state.end()
        for cursor in self._cursors.values():
            cursor.outlives_transaction = cursor.outlives_transaction or (cursor.hold and tag == "COMMIT")
        await self._close_cursors([name for name, cursor in self._cursors.items() if not cursor.outlives_transaction])
        return CommandResult(tag, warning)

    async def _close_cursors(self, names: Sequence[str]) -> None:
        gone = [self._cursors.pop(name) for name in names]
        await asyncio.gather(*(close_shielded(cursor.rows) for cursor in gone))

    async def _set(self, statement: Set) -> CommandResult:
        if statement.verb == "DISCARD":
            await self._close_cursors(list(self._cursors))
        if statement.name is None:
            self._settings.reset()
        else:
            self._settings.set(statement.name, statement.value)
        return CommandResult("DISCARD ALL" if statement.verb == "DISCARD" else statement.verb)

    async def close(self) -> None:
        """Closes all cursors and the catalog."""
        await self._close_cursors(list(self._cursors))
        self._catalog.close()
