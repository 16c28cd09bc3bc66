"""Accepts connections, and cancels their statements by key."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket

from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.serve.os_limits import BACKLOG
from dbt_incremental_dd.serve.pgwire.connection import Connection
from dbt_incremental_dd.serve.pgwire.encoded_cache import EncodedCache
from dbt_incremental_dd.serve.query_pool import QueryPool
from dbt_incremental_dd.serve.write_timeout import DEFAULT_WRITE_TIMEOUT, WriteTimeout


class Listener:
    """Belongs to one event loop; created by ``listen``."""

    def __init__(self, hub: Hub, queries: QueryPool, token: str | None, write_timeout: WriteTimeout) -> None:
        self._hub = hub
        self._queries = queries
        self._token = token
        self._write_timeout = write_timeout
        self._encoded_cache = EncodedCache(hub)
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
            *(self._hub, self._queries, self._token, key, self._cancel),
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
    hub: Hub,
    bound: socket.socket,
    token: str | None,
    queries: QueryPool | None = None,
    write_timeout: WriteTimeout = DEFAULT_WRITE_TIMEOUT,
) -> Listener:
    """A listener on a bound socket. ``token``: every client's password; None to require none. ``queries``: the pool
    that computes SELECTs; by default one of its own."""
    listener = Listener(hub, queries or QueryPool(hub.database.storage), token, write_timeout)
    await listener.start(bound)
    return listener
