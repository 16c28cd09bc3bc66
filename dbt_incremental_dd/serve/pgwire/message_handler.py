"""Handles a client's messages: the simple and the extended query protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pyarrow as pa

from dbt_incremental_dd.serve.pgwire import copy_format, messages, sender
from dbt_incremental_dd.serve.pgwire.encoded_cache import EncodedCache
from dbt_incremental_dd.serve.pgwire.errors import CANCELED, PgError, ProtocolError, to_pg_error
from dbt_incremental_dd.serve.pgwire.executor import CommandResult, Executor, RowsResult
from dbt_incremental_dd.serve.pgwire.messages import Fields, Frame
from dbt_incremental_dd.serve.pgwire.parser import parse
from dbt_incremental_dd.serve.pgwire.prepared import Portal, PreparedStatement, bind, prepare
from dbt_incremental_dd.serve.pgwire.rows import close_shielded
from dbt_incremental_dd.serve.pgwire.sender import Sender
from dbt_incremental_dd.serve.pgwire.statement_usage import DISCONNECTED, StatementUsage
from dbt_incremental_dd.serve.pgwire.statements import Deallocate, Select, Statement, Subscribe, Transaction
from dbt_incremental_dd.serve.pgwire.token_cursor import split_statements
from dbt_incremental_dd.serve.pgwire.types import TEXT
from dbt_incremental_dd.serve.shielded import run_shielded
from dbt_incremental_dd.subscribe.chunks import chunks

_CHUNK_ROWS = 5_000
"""Rows sent at a time."""
_MAX_INLINE_ROWS = 200
"""Tables of at most this many rows are encoded in the event loop, which is quicker than a thread."""


class MessageHandler:
    """Handles one frame at a time; errors of statements are sent to the client."""

    def __init__(self, executor: Executor, out: Sender, shared: EncodedCache, usage: StatementUsage) -> None:
        self._executor = executor
        self._out = out
        self._shared = shared
        self._usage = usage
        self._prepared: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._skips_to_sync = False
        """Set by an error until the next Sync; messages in between are ignored."""
        self.is_canceled = False
        """Set by whoever cancels the task in order to cancel the statement, not the connection."""
        self.is_busy = False
        self._handlers: dict[bytes, Callable[[Fields], Awaitable[None]]] = {
            **{b"Q": self._query, b"P": self._parse, b"B": self._bind, b"D": self._describe, b"E": self._execute},
            **{b"C": self._close, b"H": self._flush, b"S": self._sync},
            # Sent by clients of COPY FROM after it has been refused.
            **dict.fromkeys((b"d", b"c", b"f"), self._ignore),
            b"p": self._refuse,
        }

    async def receive(self, frame: Frame) -> None:
        """Handles a frame. Raises ProtocolError if it violates the protocol, ConnectionError if the client is gone."""
        handler = self._handlers[frame.kind]
        if self._skips_to_sync and frame.kind != b"S":
            return
        self.is_busy = True
        self._usage.begin()
        try:
            await handler(Fields(frame.body))
            self._usage.end()
        except (ProtocolError, ConnectionError):
            self._usage.end(DISCONNECTED)
            raise
        except asyncio.CancelledError:
            if not self.is_canceled:
                self._usage.end(DISCONNECTED)
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            await self._fail(PgError(CANCELED, "canceling statement due to user request"), frame.kind)
        except Exception as error:
            await self._fail(to_pg_error(error), frame.kind)
        finally:
            self.is_busy = self.is_canceled = False

    def write_ready(self) -> None:
        """Writes ReadyForQuery."""
        self._out.write(messages.ready(self._executor.transaction.status))

    async def _fail(self, error: PgError, kind: bytes) -> None:
        self.is_busy = False
        self._usage.end(error.code)
        self._executor.transaction.fail()
        self._out.write(messages.error_response(error))
        if kind == b"Q":
            self.write_ready()
        self._skips_to_sync = kind not in (b"Q", b"S")
        await self._out.flush()

    async def _query(self, fields: Fields) -> None:
        text = fields.text()
        fields.end()
        self._prepared.pop("", None)
        await self._drop_portal("")
        statements = split_statements(text)
        if not statements:
            self._out.write(messages.EMPTY_QUERY)
        for sql in statements:
            statement = parse(sql)
            self._usage.execute(statement, sql)
            outcome = await self._executor.execute(statement, sql)
            if isinstance(outcome, RowsResult) and outcome.copy is None:
                self._out.write(sender.describe_rows(outcome.rows.schema, ()))
            await self._send_all(outcome, ())
            await self._update_prepared(statement)
        self.write_ready()
        await self._out.flush()

    async def _send_all(self, outcome: CommandResult | RowsResult, formats: tuple[int, ...]) -> None:
        if isinstance(outcome, CommandResult):
            if outcome.warning is not None:
                self._out.write(messages.notice_response(outcome.warning))
            self._out.write(messages.command_complete(outcome.tag))
            return
        try:
            await self._send(outcome, formats, None)
        finally:
            await close_shielded(outcome.rows)

    async def _send(self, result: RowsResult, formats: tuple[int, ...], limit: int | None) -> bool:
        """Sends at most ``limit`` rows; returns whether all have been sent."""
        self._usage.reads(result.collection, result.as_of)
        if result.copy is not None:
            self._out.write(messages.copy_out(len(result.rows.schema)))
            self._out.write(messages.copy_data(copy_format.header(result.copy, result.rows.schema)))
        sent = 0
        while limit is None or sent < limit:
            table = await result.rows.take(_CHUNK_ROWS if limit is None else min(_CHUNK_ROWS, limit - sent))
            if table is None:
                break
            sent += table.num_rows
            for chunk in chunks(table, _CHUNK_ROWS):
                encoded = await self._encode(result, chunk, formats)
                self._out.write(encoded)
                self._usage.sent(chunk.num_rows, len(encoded))
                await self._out.flush()
        else:
            self._out.write(messages.PORTAL_SUSPENDED)
            return False
        if result.copy is not None:
            self._out.write(messages.COPY_DONE)
        self._out.write(messages.command_complete(result.verb if result.verb == "SHOW" else f"{result.verb} {sent}"))
        return True

    async def _encode(self, result: RowsResult, table: pa.Table, formats: tuple[int, ...]) -> bytes:
        copy = result.copy

        def encode() -> bytes:
            return sender.rows(table, formats) if copy is None else messages.copy_data(copy_format.lines(copy, table))

        if result.rows.is_shared:
            return await self._shared.get(table, (copy, formats), encode)
        return encode() if table.num_rows <= _MAX_INLINE_ROWS else await run_shielded(asyncio.to_thread(encode))

    async def _update_prepared(self, statement: Statement) -> None:
        """Updates prepared statements and portals after a statement."""
        if isinstance(statement, Transaction) and statement.verb in ("COMMIT", "ROLLBACK"):
            await self._drop_portals()
        elif isinstance(statement, Deallocate):
            if statement.name is None:
                self._prepared.clear()
            else:
                self._prepared.pop(statement.name, None)

    async def _parse(self, fields: Fields) -> None:
        name, sql = fields.text(), fields.text()
        oids = [fields.int32() for _ in range(fields.count())]
        fields.end()
        if name and name in self._prepared:
            raise PgError("42P05", f'prepared statement "{name}" already exists')
        self._prepared[name] = prepare(sql, oids)
        self._out.write(messages.PARSE_COMPLETE)

    async def _bind(self, fields: Fields) -> None:
        portal, name = fields.text(), fields.text()
        codes = tuple(fields.int16() for _ in range(fields.count()))
        values = [fields.value() for _ in range(fields.count())]
        formats = tuple(fields.int16() for _ in range(fields.count()))
        fields.end()
        if portal and portal in self._portals:
            raise PgError("42P03", f'portal "{portal}" already exists')
        made = bind(self._statement(name), values, codes, formats)
        await self._drop_portal(portal)
        self._portals[portal] = made
        self._out.write(messages.BIND_COMPLETE)

    async def _describe(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        fields.end()
        formats: tuple[int, ...] = ()
        if kind == b"S":
            prepared = self._statement(name)
            schema = await self._schema(prepared.statement)
            self._out.write(messages.parameter_description([oid or TEXT for oid in prepared.oids]))
        elif name not in self._portals and (of_cursor := self._executor.cursor_schema(name)) is not None:
            schema = of_cursor
        else:
            portal = self._portal(name)
            formats = portal.formats
            schema = await self._portal_schema(portal)
        self._out.write(sender.describe_rows(schema, formats) if schema is not None else messages.NO_DATA)

    async def _schema(self, statement: Statement | None) -> pa.Schema | None:
        return None if statement is None else await self._executor.describe(statement)

    async def _portal_schema(self, portal: Portal) -> pa.Schema | None:
        """The columns of a portal. Executes it if it reads, because its columns are known only then."""
        if not isinstance(portal.statement, Select | Subscribe):
            schema = await self._schema(portal.statement)
        else:
            outcome = await self._outcome_of(portal, portal.statement)
            schema = outcome.rows.schema if isinstance(outcome, RowsResult) else None
        if schema is not None:
            portal.require_formats(schema)
        return schema

    async def _outcome_of(self, portal: Portal, statement: Statement) -> CommandResult | RowsResult:
        if portal.outcome is None:
            portal.outcome = await self._executor.execute(statement, portal.sql)
        return portal.outcome

    async def _execute(self, fields: Fields) -> None:
        name, limit = fields.text(), fields.int32()
        fields.end()
        portal = self._portal(name)
        if portal.statement is None:
            self._out.write(messages.EMPTY_QUERY)
            return
        self._usage.execute(portal.statement, portal.sql)
        outcome = await self._outcome_of(portal, portal.statement)
        if isinstance(outcome, RowsResult) and outcome.copy is None:
            portal.require_formats(outcome.rows.schema)
            await self._send(outcome, portal.formats, limit if limit > 0 else None)
        else:
            await self._send_all(outcome, portal.formats)
        await self._update_prepared(portal.statement)

    async def _close(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        fields.end()
        if kind == b"S":
            self._prepared.pop(name, None)
        else:
            await self._drop_portal(name)
        self._out.write(messages.CLOSE_COMPLETE)

    async def _flush(self, fields: Fields) -> None:
        fields.end()
        await self._out.flush()

    async def _sync(self, fields: Fields) -> None:
        fields.end()
        self._skips_to_sync = False
        if not self._executor.transaction.is_open:
            await self._drop_portals()
        self.write_ready()
        await self._out.flush()

    async def _ignore(self, fields: Fields) -> None:
        pass

    async def _refuse(self, fields: Fields) -> None:
        raise ProtocolError("no password was requested")

    def _statement(self, name: str) -> PreparedStatement:
        if name not in self._prepared:
            raise PgError("26000", f'prepared statement "{name}" does not exist')
        return self._prepared[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise PgError("34000", f'portal "{name}" does not exist')
        return self._portals[name]

    async def _drop_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None and isinstance(portal.outcome, RowsResult):
            await close_shielded(portal.outcome.rows)

    async def _drop_portals(self) -> None:
        for name in list(self._portals):
            await self._drop_portal(name)

    async def close(self) -> None:
        """Closes portals, cursors and the catalog."""
        await self._drop_portals()
        await self._executor.close()
