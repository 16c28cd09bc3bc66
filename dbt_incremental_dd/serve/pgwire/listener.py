"""Accepts connections, and cancels their statements by key."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
import ssl

from dbt_incremental_dd.serve.gate import Gate
from dbt_incremental_dd.serve.os_limits import BACKLOG
from dbt_incremental_dd.serve.pgwire.connection import Connection
from dbt_incremental_dd.serve.pgwire.encoded_cache import EncodedCache
from dbt_incremental_dd.serve.write_timeout import DEFAULT_WRITE_TIMEOUT, WriteTimeout


class Listener:
    """Belongs to one event loop; created by ``listen``."""

    def __init__(self, gate: Gate, tls: ssl.SSLContext | None, write_timeout: WriteTimeout) -> None:
        self._gate = gate
        self._tls = tls
        self._write_timeout = write_timeout
        self._encoded_cache = EncodedCache(gate.hub)
        self._processes = itertools.count(1)
        self._connections: dict[tuple[int, int], Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def start(self, bound: socket.socket) -> None:
        """Starts accepting connections."""
        self._server = await asyncio.start_server(self._connected, sock=bound, backlog=BACKLOG)

    async def close(self) -> None:
        """Closes the socket and all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Keep-alive finds clients whose machine is gone.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key = next(self._processes), secrets.randbits(32)
        connection = Connection(
            *(self._gate, self._tls, key, self._cancel),
            *((reader, writer), self._write_timeout, self._encoded_cache),
        )
        self._connections[key] = connection
        try:
            await connection.serve()
        finally:
            del self._connections[key]

    def _cancel(self, key: tuple[int, int]) -> None:
        found = self._connections.get(key)
        if found is not None:
            found.cancel()


async def listen(
    gate: Gate,
    bound: socket.socket,
    tls: ssl.SSLContext | None = None,
    write_timeout: WriteTimeout = DEFAULT_WRITE_TIMEOUT,
) -> Listener:
    """A listener on a bound socket. A client's token is its password. With ``tls`` there are no other connections."""
    listener = Listener(gate, tls, write_timeout)
    await listener.start(bound)
    return listener
