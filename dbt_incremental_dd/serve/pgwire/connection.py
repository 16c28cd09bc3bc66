"""One client's connection: start-up, authentication, cancellation and end."""

from __future__ import annotations

import asyncio
import ssl
import struct
import traceback
from collections import deque
from collections.abc import Callable

from dbt_incremental_dd.serve.gate import Gate
from dbt_incremental_dd.serve.pgwire import messages
from dbt_incremental_dd.serve.pgwire.catalog import Client
from dbt_incremental_dd.serve.pgwire.encoded_cache import EncodedCache
from dbt_incremental_dd.serve.pgwire.errors import FEATURE, PgError, ProtocolError, to_pg_error
from dbt_incremental_dd.serve.pgwire.executor import Executor
from dbt_incremental_dd.serve.pgwire.message_handler import MessageHandler
from dbt_incremental_dd.serve.pgwire.messages import Fields, Frame
from dbt_incremental_dd.serve.pgwire.sender import Sender
from dbt_incremental_dd.serve.pgwire.settings import REPORTED, Settings
from dbt_incremental_dd.serve.pgwire.statement_usage import INVALID_PASSWORD, SUCCESS, StatementUsage
from dbt_incremental_dd.serve.shielded import wait_until_done
from dbt_incremental_dd.serve.usage import Usage
from dbt_incremental_dd.serve.users.authenticator import Login
from dbt_incremental_dd.serve.users.sessions import LoginEnded
from dbt_incremental_dd.serve.write_timeout import WriteTimeout

_DISCONNECTED = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)
"""Raised if the client is gone or has been disconnected."""
STARTUP_SECONDS = 60.0
"""Time limit for start-up and authentication."""
_MAX_READ_AHEAD = messages.MAX_MESSAGE
"""Bytes that are read ahead of the frame being handled."""


class Connection:
    """``key``: the process id and the secret with which another connection can cancel this one's statement, by
    ``cancel``."""

    def __init__(
        self,
        gate: Gate,
        tls: ssl.SSLContext | None,
        key: tuple[int, int],
        cancel: Callable[[tuple[int, int]], None],
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        write_timeout: WriteTimeout,
        encoded_cache: EncodedCache,
    ) -> None:
        self._gate = gate
        self._tls = tls
        self._key = key
        self._cancel_other = cancel
        self._reader, self._writer = streams
        self._write_timeout = write_timeout
        self._out = Sender(self._writer, write_timeout)
        self._peer = ":".join(str(part) for part in (self._writer.get_extra_info("peername") or ())[:2])
        self._encoded_cache = encoded_cache
        self._inbox = _Inbox()
        self._handler: MessageHandler | None = None
        self._handling: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Handles the connection until it ends. Errors of the client are not raised."""
        try:
            try:
                async with asyncio.timeout(STARTUP_SECONDS):
                    started = await self._start_up()
                if started is not None:
                    await self._gate.sessions.run(started[0], self._serve_session(*started))
            except _DISCONNECTED:
                raise
            except LoginEnded as ended:
                self._out.write(messages.error_response(PgError("28000", str(ended)), "FATAL"))
                await self._out.flush()
            except Exception as error:
                self._out.write(messages.error_response(to_pg_error(error), "FATAL"))
                await self._out.flush()
        except _DISCONNECTED:
            pass
        finally:
            self._writer.close()

    def cancel(self) -> None:
        """Cancels the running statement, if any."""
        if self._handler is not None and self._handler.is_busy and self._handling is not None:
            self._handler.is_canceled = True
            self._handling.cancel()

    async def _start_up(self) -> tuple[Login, dict[str, str]] | None:
        """The client's login and start-up parameters; None if it only sent a cancel request."""
        is_encrypted = False
        while True:
            fields = Fields((await messages.read_startup(self._reader)).body)
            code = fields.int32()
            if code not in (messages.SSL_REQUEST, messages.GSS_REQUEST):
                break
            if code == messages.SSL_REQUEST and self._tls is not None and not is_encrypted:
                await self._encrypt(self._tls)
                is_encrypted = True
            else:
                self._writer.write(b"N")
        if code == messages.CANCEL_REQUEST:
            process, secret = struct.unpack("!II", fields.take(8))
            self._cancel_other((process, secret))
            return None
        if code >> 16 != messages.VERSION_3 >> 16:
            raise PgError(FEATURE, f"protocol {code >> 16}.{code & 0xFFFF} is not supported", "Use version 3.0.")
        parameters = {}
        while name := fields.text():
            parameters[name] = fields.text()
        fields.end()
        if "user" not in parameters:
            raise PgError("28000", "no user name is given")
        if self._tls is not None and not is_encrypted:
            raise PgError("28000", "this server has no connections without TLS", "Set sslmode=require.")
        self._negotiate(code & 0xFFFF, [name for name in parameters if name.startswith("_pq_.")])
        return await self._authenticate(parameters["user"]), parameters

    async def _encrypt(self, tls: ssl.SSLContext) -> None:
        """Continues by TLS. What the client has sent ahead in plain text stays unread: it may be somebody else's."""
        loop = asyncio.get_running_loop()
        self._writer.write(b"S")
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport = await loop.start_tls(self._writer.transport, protocol, tls, server_side=True)
        if transport is None:
            raise ConnectionAbortedError("the client is gone")
        protocol.connection_made(transport)
        self._reader, self._writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)
        self._out = Sender(self._writer, self._write_timeout)

    def _negotiate(self, minor: int, options: list[str]) -> None:
        if minor or options:
            names = b"".join(messages.text(name) for name in options)
            self._writer.write(messages.frame(b"v", struct.pack("!ii", messages.VERSION_3, len(options)) + names))

    async def _authenticate(self, user: str) -> Login:
        authenticator, token = self._gate.authenticator, ""
        if authenticator.needs_token:
            self._writer.write(messages.AUTHENTICATION_CLEARTEXT)
            frame = await messages.read_frame(self._reader, messages.MAX_STARTUP)
            if frame.kind != b"p":
                raise ProtocolError("a password was expected")
            token = frame.body.rstrip(b"\0").decode(errors="replace")
        login = await authenticator.login(token)
        usage = Usage("postgres", user if login is None else login.user.name, self._peer, "connect")
        usage.status = INVALID_PASSWORD if login is None else SUCCESS
        self._gate.recorder.ended(usage)
        if login is None:
            message = f'password authentication failed for user "{user}"'
            raise PgError(INVALID_PASSWORD, message, "The token is the password.")
        self._writer.write(messages.AUTHENTICATION_OK)
        return login

    async def _serve_session(self, login: Login, parameters: dict[str, str]) -> None:
        user = parameters.pop("user")
        database = parameters.pop("database", user)
        settings = Settings(parameters)
        reader = self._gate.reader(login, Usage("postgres", login.user.name, self._peer))
        executor = Executor(reader, Client(user, database, self._key[0], settings), settings)
        usage = StatementUsage(reader, self._gate.recorder)
        self._handler = MessageHandler(executor, self._out, self._encoded_cache, usage)
        try:
            for name, value in REPORTED.items():
                self._writer.write(messages.parameter_status(name, value))
            self._writer.write(messages.key_data(*self._key))
            self._handler.write_ready()
            await self._out.flush()
            await self._until_disconnected(self._handler)
        finally:
            await wait_until_done(asyncio.ensure_future(self._handler.close()))

    async def _until_disconnected(self, handler: MessageHandler) -> None:
        """Handles frames. Reads ahead, so that a disconnect is noticed while a statement waits."""
        self._handling = asyncio.create_task(self._handle(handler))
        tasks = {self._handling, asyncio.create_task(self._read())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        errors = [error for error in ended if isinstance(error, BaseException)]
        for error in errors:
            # Their frames would keep the rows that were being sent until the next garbage collection.
            traceback.clear_frames(error.__traceback__)
        for error in errors:
            if isinstance(error, Exception):
                raise error

    async def _handle(self, handler: MessageHandler) -> None:
        while (frame := await self._inbox.get()).kind != b"X":
            await handler.receive(frame)

    async def _read(self) -> None:
        while True:
            await self._inbox.put(await messages.read_frame(self._reader))


class _Inbox:
    """Frames that have been read but not handled; at most ``_MAX_READ_AHEAD`` bytes and one frame."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()

    async def put(self, frame: Frame) -> None:
        """Adds a frame. Waits until there is room for another one."""
        async with self._changed:
            self._frames.append(frame)
            self._bytes += len(frame.body) + 100
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._bytes <= _MAX_READ_AHEAD)

    async def get(self) -> Frame:
        """The next frame. Waits until there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._frames))
            frame = self._frames.popleft()
            self._bytes -= len(frame.body) + 100
            self._changed.notify_all()
            return frame
