"""What the statements of one connection do: they give rows, or change the connection's own state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt_incremental_dd.query.as_of import split_as_of
from dbt_incremental_dd.query.session import Answer
from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.serve.pgwire.catalog import Catalog, Client
from dbt_incremental_dd.serve.pgwire.errors import PgError
from dbt_incremental_dd.serve.pgwire.rows import Fetched, Made, Rows, Selected, closed
from dbt_incremental_dd.serve.pgwire.settings import Settings
from dbt_incremental_dd.serve.pgwire.statements import (
    Close,
    Copy,
    Declare,
    Fetch,
    Query,
    Set,
    Show,
    Source,
    Statement,
    Subscribe,
    Transaction,
)
from dbt_incremental_dd.serve.pgwire.subscribed import described, subscribe
from dbt_incremental_dd.serve.pgwire.transaction import NO_TRANSACTION, TransactionState
from dbt_incremental_dd.serve.queries import Queries
from dbt_incremental_dd.serve.settled import whole


@dataclass(frozen=True)
class Done:
    """A statement without rows. ``tag``: what it was; ``warning``: what it could not do."""

    tag: str
    warning: PgError | None = None


@dataclass(frozen=True)
class Giving:
    """A statement with rows. ``verb``: its tag, without their number; ``copy``: how they are copied, if they are."""

    verb: str
    rows: Rows
    copy: Copy | None = None


@dataclass
class _Cursor:
    """``is_kept``: it belongs to no transaction that goes on."""

    sql: str
    rows: Rows
    hold: bool
    is_kept: bool


class Executor:
    """Belongs to one event loop, and does one statement at a time."""

    def __init__(self, hub: Hub, queries: Queries, client: Client, settings: Settings) -> None:
        self.transaction = TransactionState()
        self._settings = settings
        self._hub = hub
        self._queries = queries
        settings.limit(queries.engine.limits.seconds)
        self._session = queries.session()
        self._catalog = Catalog(hub.database, client)
        self._cursors: dict[str, _Cursor] = {}

    async def execute(self, statement: Statement, sql: str) -> Done | Giving:
        """Raises PgError, DifferentialError, or what DuckDB raises."""
        self.transaction.require(statement)
        if isinstance(statement, Query | Subscribe):
            return Giving("SELECT" if isinstance(statement, Query) else "SUBSCRIBE", await self._open(statement))
        if isinstance(statement, Copy):
            return Giving("COPY", await self._open(statement.source), statement)
        if isinstance(statement, Fetch):
            rows = self._cursor(statement.name).rows
            return Giving("FETCH", Fetched(rows, statement.count, statement.timeout))
        if isinstance(statement, Show):
            return Giving("SHOW", Made(self._settings.show(statement.name)))
        if isinstance(statement, Declare):
            return await self._declare(statement, sql)
        if isinstance(statement, Close):
            return await self._close(statement)
        if isinstance(statement, Transaction):
            return await self._transact(statement)
        if isinstance(statement, Set):
            return await self._set(statement)
        return Done("DEALLOCATE ALL" if statement.name is None else "DEALLOCATE")

    async def describe(self, statement: Statement) -> pa.Schema | None:
        """The columns that a statement would have, without executing it; None where it has none."""
        self.transaction.require(statement)
        if isinstance(statement, Subscribe):
            return await whole(self._hub.run(described, self._hub.database, statement))
        if isinstance(statement, Fetch):
            return self._cursor(statement.name).rows.schema
        if isinstance(statement, Show):
            return self._settings.show(statement.name).schema
        if not isinstance(statement, Query):
            return None
        text, _ = split_as_of(statement.sql)
        answer = await self._answer(f"SELECT * FROM ({text}\n) AS described LIMIT 0")
        await answer.close()
        return answer.schema

    def cursor_schema(self, name: str) -> pa.Schema | None:
        """The columns of a cursor; None where there is none of this name."""
        found = self._cursors.get(name)
        return None if found is None else found.rows.schema

    def _interrupt(self) -> None:
        self._session.interrupt()
        self._catalog.interrupt()

    async def _open(self, source: Source) -> Rows:
        if isinstance(source, Subscribe):
            return await subscribe(self._hub, source)
        return await self._answer(source.sql)

    async def _answer(self, sql: str) -> Selected:
        self._session.seconds = self._settings.statement_timeout
        answer = await self._queries.begin(self._interrupt, self._select, sql)
        return Selected(self._queries, answer)

    def _select(self, sql: str) -> Answer:
        """In a thread for queries. The first read of a transaction fixes the time of the others."""
        held = {name: cursor.sql for name, cursor in self._cursors.items()}
        answered = self._catalog.answer(sql, held, lambda: self._queries.engine.running(self._session.seconds))
        if answered is not None:
            return answered
        _, own = split_as_of(sql)
        answer = self._session.select(sql, as_of=self.transaction.time)
        if self.transaction.is_open and own is None and self.transaction.time is None:
            self.transaction.time = answer.as_of
        return answer

    def _cursor(self, name: str) -> _Cursor:
        if name not in self._cursors:
            raise PgError("34000", f'cursor "{name}" does not exist')
        return self._cursors[name]

    async def _declare(self, statement: Declare, sql: str) -> Done:
        if not self.transaction.is_open and not statement.hold:
            raise PgError(NO_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks", "BEGIN first.")
        if statement.name in self._cursors:
            raise PgError("42P03", f'cursor "{statement.name}" already exists')
        rows = await self._open(statement.source)
        self._cursors[statement.name] = _Cursor(sql, rows, statement.hold, not self.transaction.is_open)
        return Done("DECLARE CURSOR")

    async def _close(self, statement: Close) -> Done:
        if statement.name is None:
            await self._close_cursors(list(self._cursors))
            return Done("CLOSE CURSOR ALL")
        self._cursor(statement.name)
        await self._close_cursors([statement.name])
        return Done("CLOSE CURSOR")

    async def _transact(self, statement: Transaction) -> Done:
        state = self.transaction
        if statement.verb == "BEGIN":
            warning = PgError("25001", "there is already a transaction in progress") if state.is_open else None
            state.begin()
            return Done("BEGIN", warning)
        if statement.verb not in ("COMMIT", "ROLLBACK"):
            state.savepoint(statement)
            return Done("ROLLBACK" if statement.verb == "ROLLBACK TO" else statement.verb)
        warning = None if state.is_open else PgError(NO_TRANSACTION, "there is no transaction in progress")
        tag = "ROLLBACK" if state.status == b"E" else statement.verb
        state.end()
        for cursor in self._cursors.values():
            cursor.is_kept = cursor.is_kept or (cursor.hold and tag == "COMMIT")
        await self._close_cursors([name for name, cursor in self._cursors.items() if not cursor.is_kept])
        return Done(tag, warning)

    async def _close_cursors(self, names: Sequence[str]) -> None:
        gone = [self._cursors.pop(name) for name in names]
        await asyncio.gather(*(closed(cursor.rows) for cursor in gone))

    async def _set(self, statement: Set) -> Done:
        if statement.verb == "DISCARD":
            await self._close_cursors(list(self._cursors))
        if statement.name is None:
            self._settings.reset()
        else:
            self._settings.set(statement.name, statement.value)
        return Done("DISCARD ALL" if statement.verb == "DISCARD" else statement.verb)

    async def close(self) -> None:
        """It holds nothing any more."""
        await self._close_cursors(list(self._cursors))
        self._catalog.close()
