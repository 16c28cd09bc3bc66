"""Hundreds of subscribers, and subscribers that read nothing, by each protocol."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pyarrow as pa
import pytest

from benchmarks.clients import PROTOCOLS, Client
from benchmarks.following import CHANGED, View
from dbt_incremental_dd.serve.write_timeout import WriteTimeout
from dbt_incremental_dd.subscribe import reads
from tests.serve.serving import Served, serving
from tests.subscribe.stored import Stored

MANY = 200
MUTE = 30


def port(served: Served, protocol: str) -> int:
    return served.wire if protocol == "pgwire" else served.port


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_get_every_message_and_take_no_threads(tmp_path: Path, protocol: str) -> None:
    view = View(tmp_path, 100)

    async def all_of_them(served: Served) -> None:
        loop, times, clients = asyncio.get_running_loop(), [], []
        for _ in range(MANY):
            _, client = await loop.create_connection(
                lambda: PROTOCOLS[protocol](100, 2 * CHANGED), "127.0.0.1", port(served, protocol)
            )
            assert isinstance(client, Client)
            clients.append(client)
        await asyncio.wait_for(asyncio.gather(*(client.joined for client in clients)), 60)
        assert threading.active_count() - before <= 60, "of the server, whatever the number of its clients"
        for _ in range(5):
            times.append(await asyncio.to_thread(view.change))
            async with asyncio.timeout(20):
                while not all(times[-1] in client.latencies for client in clients):
                    await asyncio.sleep(0.01)
        assert all(list(client.latencies) == times for client in clients)

    before = threading.active_count()
    with serving(tmp_path) as served:
        asyncio.run(all_of_them(served))


def sse(served: Served) -> bytes:
    return b"GET /collections/kept/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def ws(served: Served) -> bytes:
    return (
        b"GET /collections/kept/changes HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )


def pgwire(served: Served) -> bytes:
    return b"\0\0\0\x13\0\x03\0\0user\0mute\0\0Q\0\0\0\x13subscribe kept\0"


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is collected, as in a large process between two collections."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("leaves", [None, 1.0, 0.0], ids=["stays", "leaves", "leaves-at-once"])
@pytest.mark.parametrize("greeting", [sse, ws, pgwire])
def test_who_reads_nothing_is_let_go_and_takes_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, greeting: Callable[[Served], bytes], leaves: float | None
) -> None:
    """``leaves``: after how many seconds; at once is while the rows are read."""
    monkeypatch.setattr(reads, "SHARED_BYTES", 1_000_000)
    stored = Stored(tmp_path)
    stored.commit({10: Counter({(k, "x" * 400): 1 for k in range(50_000)})}, 11)
    size = stored.collection.changes().nbytes
    assert size > 20_000_000
    with serving(tmp_path, write_timeout=WriteTimeout(2.0 if leaves is None else 60.0)) as served:
        resident, held = psutil.Process().memory_info().rss, pa.total_allocated_bytes()
        mute = [socket.socket() for _ in range(MUTE)]
        for one in mute:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            one.connect(("127.0.0.1", port(served, greeting.__name__)))
            one.sendall(greeting(served))
        until(lambda: followers(served) == MUTE)
        time.sleep(1.0 if leaves is None else leaves)
        assert pa.total_allocated_bytes() - held < 4 * size, "what waits for all of them is held once"
        assert psutil.Process().memory_info().rss - resident < 300_000_000
        if leaves is not None:
            for one in mute:
                one.close()
        until(lambda: followers(served) == 0)
        until(lambda: pa.total_allocated_bytes() - held < size / 2)
        assert leaves is not None or all(is_cut_off(one) for one in mute)


def followers(served: Served) -> int:
    return int(httpx.get(f"{served.url}/collections/kept", timeout=20).json()["followers"])


def is_cut_off(client: socket.socket) -> bool:
    client.settimeout(10)
    try:
        while client.recv(1_000_000):
            pass
    except ConnectionResetError:
        pass
    finally:
        client.close()
    return True


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
