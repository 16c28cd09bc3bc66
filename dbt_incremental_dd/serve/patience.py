"""How long a client is waited for: one that takes too little of what waits for it is let go, whatever it speaks."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)
Find = Callable[[object], asyncio.WriteTransport | None]


class LetGo(ConnectionAbortedError):
    """A client has been cut off."""


@dataclass(frozen=True)
class Patience:
    """A client has to take ``least`` bytes in ``seconds``, or all that waits for it."""

    seconds: float = 60.0
    least: int = 65_536

    async def wait(self, transport: asyncio.WriteTransport, room: Callable[[], Awaitable[None]]) -> None:
        """Waits for ``room``, which may be asked for again when it has been cancelled. Raises LetGo where the client is
        too slow; its connection is cut off then, with all that waits for it."""
        while transport.get_write_buffer_size():
            waiting = transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(self.seconds):
                    return await room()
            except TimeoutError:
                if waiting - transport.get_write_buffer_size() < self.least:
                    transport.abort()
                    message = f"a client that takes less than {self.least} bytes in {self.seconds} s is let go"
                    logger.info(message)
                    raise LetGo(message) from None
        return await room()


PATIENCE = Patience()
"""What clients may count on."""


class Patient:
    """An HTTP application whose clients are waited for with patience. ``find``: the transport of a client, by its
    address."""

    def __init__(self, app: ASGIApp, patience: Patience, find: Find) -> None:
        self._app = app
        self._patience = patience
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = self._find(scope.get("client")) if scope["type"] in ("http", "websocket") else None
        if transport is None:
            await self._app(scope, receive, send)
            return
        found = transport

        async def patiently(message: Message) -> None:
            # The server waits for room before it writes, so what is cancelled meanwhile has not been written.
            await self._patience.wait(found, lambda: send(message))

        try:
            await self._app(scope, receive, patiently)
        except LetGo as error:
            # An error's frames would keep what they hold, such as a batch, until the garbage collector comes by.
            traceback.clear_frames(error.__traceback__)
