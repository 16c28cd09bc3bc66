"""An ASGI middleware that applies the write timeout to each client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbt_incremental_dd.serve.cleared_frames import cleared_frames
from dbt_incremental_dd.serve.write_timeout import ClientTooSlow, WriteTimeout

FindTransport = Callable[[object], asyncio.WriteTransport | None]


class WriteTimeoutMiddleware:
    """Disconnects clients that read too slowly. ``find_transport`` maps a client's address to its transport."""

    def __init__(self, app: ASGIApp, write_timeout: WriteTimeout, find_transport: FindTransport) -> None:
        self._app = app
        self._write_timeout = write_timeout
        self._find_transport = find_transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = self._find_transport(scope.get("client")) if scope["type"] in ("http", "websocket") else None
        if transport is None:
            await self._app(scope, receive, send)
            return
        found = transport

        async def send_in_time(message: Message) -> None:
            # The server waits for room before it writes, so a cancelled send has not written anything.
            await self._write_timeout.wait(found, lambda: send(message))

        with contextlib.suppress(ClientTooSlow), cleared_frames():
            await self._app(scope, receive, send_in_time)
