"""Subscribers that cost next to nothing: they read raw sockets, and count.

``python -m benchmarks.clients PROTOCOL PORT CLIENTS ROWS CHANGES`` follows a view of so many rows, of which so many
updates come at a time. A line of JSON says when all have the snapshot. After a line that says how many times have come
since, the second one tells what has been told of them, and how late.
"""

from __future__ import annotations

import asyncio
import json
import re
import struct
import sys
import time
from abc import abstractmethod
from collections import Counter
from typing import Any

_LAST = 20.0
"""Seconds that the last message may take."""
PATH = "/collections/totals/changes"


class Client(asyncio.Protocol):
    """Follows ``totals``. ``rows``: of the snapshot; ``changes``: updates at a time."""

    def __init__(self, rows: int, changes: int) -> None:
        self.joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: dict[int, float] = {}
        """Seconds after its time that each one has come whole."""
        self._changes = changes
        self._missing = rows
        self._seen: Counter[int] = Counter()
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Says what it wants."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self.greeting())

    def connection_lost(self, error: Exception | None) -> None:
        """It will hear no more."""
        if not self.joined.done():
            self.joined.set_exception(ConnectionError(f"the server has closed the connection: {error}"))

    def data_received(self, data: bytes) -> None:
        """More of the stream."""
        self._buffer += data
        self.read()

    def told(self, t: int, updates: int) -> None:
        """So many updates of a time."""
        if self._missing > 0:
            self._missing -= updates
            if self._missing <= 0:
                self.joined.set_result(None)
            return
        self._seen[t] += updates
        if self._seen[t] == self._changes:
            self.latencies[t] = time.time() - t / 1000

    @abstractmethod
    def greeting(self) -> bytes:
        """The first bytes that it sends."""

    @abstractmethod
    def read(self) -> None:
        """Takes what is whole out of the buffer."""

    def _message(self, data: bytes) -> None:
        found = _TIMESTAMP.match(data)
        if found is not None:
            self.told(int(found[1]), data.count(b'"note": '))


_TIMESTAMP = re.compile(rb'\{"timestamp": (\d+)')


class Events(Client):
    """Server-sent events. The chunks of the body are of no interest: events end with an empty line."""

    def greeting(self) -> bytes:
        return f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    def read(self) -> None:
        *events, rest = self._buffer.split(b"\n\n")
        self._buffer = rest
        for event in events:
            at = event.find(b"data: ")
            if at >= 0:
                self._message(bytes(event[at + 6 :]))


class Socket(Client):
    """A web socket, which answers pings."""

    def greeting(self) -> bytes:
        self._is_open = False
        return (
            f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ).encode()

    def read(self) -> None:
        if not self._is_open:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._is_open = True
            del self._buffer[: end + 4]
        while (frame := self._frame()) is not None:
            kind, body = frame
            if kind == 0x9:
                self._transport.write(bytes([0x8A, 0x80 | len(body)]) + bytes(4) + body)
            elif kind == 0x1:
                self._message(body)

    def _frame(self) -> tuple[int, bytes] | None:
        if len(self._buffer) < 2:
            return None
        size, begin = self._buffer[1] & 0x7F, 2
        for mark, layout in ((126, "!H"), (127, "!Q")):
            if size == mark:
                begin = 2 + struct.calcsize(layout)
                if len(self._buffer) < begin:
                    return None
                (size,) = struct.unpack(layout, self._buffer[2:begin])
                break
        if len(self._buffer) < begin + size:
            return None
        kind, body = self._buffer[0] & 0xF, bytes(self._buffer[begin : begin + size])
        del self._buffer[: begin + size]
        return kind, body


class Wire(Client):
    """SUBSCRIBE by the Postgres protocol."""

    def greeting(self) -> bytes:
        return _startup(b"user\0bench\0database\0dd\0\0") + _query(b"SUBSCRIBE totals\0")

    def read(self) -> None:
        buffer, at = bytes(self._buffer), 0
        while len(buffer) >= at + 5:
            (size,) = struct.unpack_from("!i", buffer, at + 1)
            if len(buffer) < at + 1 + size:
                break
            if buffer[at] == ord("D"):
                (width,) = struct.unpack_from("!i", buffer, at + 7)
                self.told(int(buffer[at + 11 : at + 11 + width]), 1)
            elif buffer[at] == ord("E"):
                raise ConnectionError(repr(buffer[at + 5 : at + 1 + size]))
            at += 1 + size
        del self._buffer[:at]


def _startup(body: bytes) -> bytes:
    return struct.pack("!ii", len(body) + 8, 3 << 16) + body


def _query(body: bytes) -> bytes:
    return b"Q" + struct.pack("!i", len(body) + 4) + body


PROTOCOLS: dict[str, type[Client]] = {"sse": Events, "ws": Socket, "pgwire": Wire}


async def follow(protocol: str, port: int, clients: int, rows: int, changes: int) -> None:
    """Connects all at once, and says what they were told."""
    raise_limit()
    loop = asyncio.get_running_loop()

    async def one() -> Client:
        _, client = await loop.create_connection(lambda: PROTOCOLS[protocol](rows, changes), "127.0.0.1", port)
        await client.joined
        return client

    found = await asyncio.wait_for(asyncio.gather(*(one() for _ in range(clients)), return_exceptions=True), 120)
    joined = [client for client in found if isinstance(client, Client)]
    for error in Counter(repr(error) for error in found if not isinstance(error, Client)).items():
        print(error, file=sys.stderr)
    print(json.dumps({"joined": len(joined)}), flush=True)
    times = int(await asyncio.to_thread(sys.stdin.readline) or 0)
    deadline = time.monotonic() + _LAST
    while any(len(client.latencies) < times for client in joined) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    print(json.dumps(summary(joined)), flush=True)


def summary(clients: list[Client]) -> dict[str, Any]:
    """Times told, and how late, in seconds."""
    late = sorted(latency for client in clients for latency in client.latencies.values())
    at = {name: round(late[min(int(len(late) * part), len(late) - 1)], 3) for name, part in _PARTS} if late else {}
    return {"delivered": len(late), **dict.fromkeys((name for name, _ in _PARTS)), **at, "cpu": time.process_time()}


_PARTS = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))


def raise_limit() -> None:
    """As many sockets as may be."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    asyncio.run(follow(sys.argv[1], *map(int, sys.argv[2:])))
