"""What a client says after it has been let in, frame by frame: the simple and the extended query protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pyarrow as pa

from dbt_incremental_dd.serve.messages import BYTES
from dbt_incremental_dd.serve.pgwire import copying, messages, sender
from dbt_incremental_dd.serve.pgwire.encoded import Encoded
from dbt_incremental_dd.serve.pgwire.errors import CANCELED, PgError, ProtocolError, known
from dbt_incremental_dd.serve.pgwire.executor import Done, Executor, Giving
from dbt_incremental_dd.serve.pgwire.messages import Fields, Frame
from dbt_incremental_dd.serve.pgwire.parser import parse
from dbt_incremental_dd.serve.pgwire.prepared import Portal, Prepared, bind, prepare
from dbt_incremental_dd.serve.pgwire.rows import closed
from dbt_incremental_dd.serve.pgwire.sender import Sender
from dbt_incremental_dd.serve.pgwire.statements import Deallocate, Query, Statement, Subscribe, Transaction
from dbt_incremental_dd.serve.pgwire.types import TEXT
from dbt_incremental_dd.serve.pgwire.words import split
from dbt_incremental_dd.serve.settled import whole
from dbt_incremental_dd.subscribe.parts import parts

_CHUNK = 5_000
"""Rows that are sent at a time."""
_FEW = 200
"""Rows that are encoded sooner than a thread is asked to."""


class Conversation:
    """With one client, which gets all errors as they come; for one frame at a time."""

    def __init__(self, executor: Executor, out: Sender, shared: Encoded) -> None:
        self._executor = executor
        self._out = out
        self._shared = shared
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._skips = False
        """After an error up to the next Sync."""
        self.is_canceled = False
        """Whether the client wants the frame's statement to end; who sets it cancels the task."""
        self.is_busy = False
        self._handlers: dict[bytes, Callable[[Fields], Awaitable[None]]] = {
            **{b"Q": self._query, b"P": self._parse, b"B": self._bind, b"D": self._describe, b"E": self._execute},
            **{b"C": self._close, b"H": self._flush, b"S": self._sync},
            # What a client of COPY FROM sends after that has been refused.
            **dict.fromkeys((b"d", b"c", b"f"), self._ignore),
            b"p": self._refuse,
        }

    async def receive(self, frame: Frame) -> None:
        """Raises ProtocolError where the client does not keep to the protocol, ConnectionError where it is gone."""
        handler = self._handlers[frame.kind]
        if self._skips and frame.kind != b"S":
            return
        self.is_busy = True
        try:
            await handler(Fields(frame.body))
        except (ProtocolError, ConnectionError):
            raise
        except asyncio.CancelledError:
            if not self.is_canceled:
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
            await self._fail(PgError(CANCELED, "canceling statement due to user request"), frame.kind)
        except Exception as error:
            await self._fail(known(error), frame.kind)
        finally:
            self.is_busy = self.is_canceled = False

    def greet(self) -> None:
        """The first statement may come."""
        self._out.write(messages.ready(self._executor.transaction.status))

    async def _fail(self, error: PgError, kind: bytes) -> None:
        self.is_busy = False
        self._executor.transaction.fail()
        self._out.write(messages.error_response(error))
        if kind == b"Q":
            self.greet()
        self._skips = kind not in (b"Q", b"S")
        await self._out.flush()

    async def _query(self, fields: Fields) -> None:
        text = fields.text()
        fields.end()
        self._prepared.pop("", None)
        await self._drop_portal("")
        statements = split(text)
        if not statements:
            self._out.write(messages.EMPTY_QUERY)
        for sql in statements:
            statement = parse(sql)
            outcome = await self._executor.execute(statement, sql)
            if isinstance(outcome, Giving) and outcome.copy is None:
                self._out.write(sender.described(outcome.rows.schema, ()))
            await self._send_all(outcome, ())
            await self._after(statement)
        self.greet()
        await self._out.flush()

    async def _send_all(self, outcome: Done | Giving, formats: tuple[int, ...]) -> None:
        if isinstance(outcome, Done):
            if outcome.warning is not None:
                self._out.write(messages.notice_response(outcome.warning))
            self._out.write(messages.command_complete(outcome.tag))
            return
        try:
            await self._send(outcome, formats, None)
        finally:
            await closed(outcome.rows)

    async def _send(self, giving: Giving, formats: tuple[int, ...], limit: int | None) -> bool:
        """At most ``limit`` rows; whether all have been sent."""
        if giving.copy is not None:
            self._out.write(messages.copy_out(len(giving.rows.schema)))
            self._out.write(messages.copy_data(copying.header(giving.copy, giving.rows.schema)))
        sent = 0
        while limit is None or sent < limit:
            table = await giving.rows.take(_CHUNK if limit is None else min(_CHUNK, limit - sent))
            if table is None:
                break
            sent += table.num_rows
            for part in parts(table, _CHUNK, BYTES):
                self._out.write(await self._encoded(giving, part, formats))
                await self._out.flush()
        else:
            self._out.write(messages.PORTAL_SUSPENDED)
            return False
        if giving.copy is not None:
            self._out.write(messages.COPY_DONE)
        self._out.write(messages.command_complete(giving.verb if giving.verb == "SHOW" else f"{giving.verb} {sent}"))
        return True

    async def _encoded(self, giving: Giving, table: pa.Table, formats: tuple[int, ...]) -> bytes:
        copy = giving.copy

        def made() -> bytes:
            return sender.rows(table, formats) if copy is None else messages.copy_data(copying.lines(copy, table))

        if giving.rows.is_shared:
            return await self._shared.get(table, (copy, formats), made)
        return made() if table.num_rows <= _FEW else await whole(asyncio.to_thread(made))

    async def _after(self, statement: Statement) -> None:
        """What else a statement does to what the client has prepared."""
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
            schema = await self._columns(prepared.statement)
            self._out.write(messages.parameter_description([oid or TEXT for oid in prepared.oids]))
        elif name not in self._portals and (of_cursor := self._executor.cursor_schema(name)) is not None:
            schema = of_cursor
        else:
            portal = self._portal(name)
            formats = portal.formats
            schema = await self._columns_of(portal)
        self._out.write(sender.described(schema, formats) if schema is not None else messages.NO_DATA)

    async def _columns(self, statement: Statement | None) -> pa.Schema | None:
        return None if statement is None else await self._executor.describe(statement)

    async def _columns_of(self, portal: Portal) -> pa.Schema | None:
        """A portal that reads is executed for it: its columns are known only then."""
        if not isinstance(portal.statement, Query | Subscribe):
            schema = await self._columns(portal.statement)
        else:
            outcome = await self._executed(portal, portal.statement)
            schema = outcome.rows.schema if isinstance(outcome, Giving) else None
        if schema is not None:
            portal.require_formats(schema)
        return schema

    async def _executed(self, portal: Portal, statement: Statement) -> Done | Giving:
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
        outcome = await self._executed(portal, portal.statement)
        if isinstance(outcome, Giving) and outcome.copy is None:
            portal.require_formats(outcome.rows.schema)
            await self._send(outcome, portal.formats, limit if limit > 0 else None)
        else:
            await self._send_all(outcome, portal.formats)
        await self._after(portal.statement)

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
        self._skips = False
        if not self._executor.transaction.is_open:
            await self._drop_portals()
        self.greet()
        await self._out.flush()

    async def _ignore(self, fields: Fields) -> None:
        pass

    async def _refuse(self, fields: Fields) -> None:
        raise ProtocolError("nobody has asked for a password")

    def _statement(self, name: str) -> Prepared:
        if name not in self._prepared:
            raise PgError("26000", f'prepared statement "{name}" does not exist')
        return self._prepared[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise PgError("34000", f'portal "{name}" does not exist')
        return self._portals[name]

    async def _drop_portal(self, name: str) -> None:
        portal = self._portals.pop(name, None)
        if portal is not None and isinstance(portal.outcome, Giving):
            await closed(portal.outcome.rows)

    async def _drop_portals(self) -> None:
        for name in list(self._portals):
            await self._drop_portal(name)

    async def close(self) -> None:
        """It holds nothing any more."""
        await self._drop_portals()
        await self._executor.close()
