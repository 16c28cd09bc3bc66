"""The write timeout: a client that reads too little of its pending output is disconnected, whatever its protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

logger = logging.getLogger(__name__)


class ClientTooSlow(ConnectionAbortedError):
    """A client has been disconnected because it read too slowly."""


@dataclass(frozen=True)
class WriteTimeout:
    """A client has to read ``min_bytes`` bytes within ``seconds``, or all of its pending output."""

    seconds: float = 60.0
    min_bytes: int = 65_536

    async def wait(self, transport: asyncio.WriteTransport, room: Callable[[], Awaitable[None]]) -> None:
        """Awaits ``room``, which may be called again after a cancellation.

        Raises ClientTooSlow if the client is too slow; its connection is then aborted with all pending output.
        """
        while transport.get_write_buffer_size():
            waiting = transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(self.seconds):
                    return await room()
            except TimeoutError:
                if waiting - transport.get_write_buffer_size() < self.min_bytes:
                    transport.abort()
                    limit = f"{self.min_bytes} bytes in {self.seconds} s"
                    message = f"a client that takes less than {limit} is disconnected"
                    logger.info(message)
                    raise ClientTooSlow(message) from None
        return await room()


DEFAULT_WRITE_TIMEOUT = WriteTimeout()
