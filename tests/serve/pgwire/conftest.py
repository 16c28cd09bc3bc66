"""A server over a small collection, in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.serve.gate import Gate
from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.serve.pgwire.listener import Listener, listen
from dbt_incremental_dd.serve.query_pool import QueryPool
from dbt_incremental_dd.serve.server import bind
from dbt_incremental_dd.serve.users.authenticator import Authenticator
from dbt_incremental_dd.serve.users.sessions import Sessions
from dbt_incremental_dd.serve.write_timeout import DEFAULT_WRITE_TIMEOUT, WriteTimeout
from tests.subscribe.stored import Stored

T = TypeVar("T")


class Server:
    """Listens on a port of its own. ``token``: its password."""

    def __init__(
        self, stored: Stored, token: str | None = None, write_timeout: WriteTimeout = DEFAULT_WRITE_TIMEOUT
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.hub: Hub = self.run(self._hub(stored))
        self._listener: Listener = self.run(
            listen(self._gate(token), bind("127.0.0.1", 0, write_timeout), write_timeout=write_timeout)
        )
        self.port = self._listener.port

    def _gate(self, token: str | None) -> Gate:
        return Gate(self.hub, QueryPool(self.hub.database.storage), Sessions(Authenticator(token)))

    async def _hub(self, stored: Stored) -> Hub:
        return Hub(Database(stored.place.storage.root))

    def run(self, wanted: Coroutine[Any, Any, T]) -> T:
        """On its loop."""
        return asyncio.run_coroutine_threadsafe(wanted, self.loop).result(30)

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=reader dbname=dd"

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Without a transaction that nobody has begun."""
        return psycopg.connect(self.dsn, **{"autocommit": True, **options})

    @property
    def connections(self) -> int:
        return self._listener.connections

    def close(self) -> None:
        self.run(self._listener.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


def example(folder: Path) -> Stored:
    """``m.kept``: at 10 (1, a) and twice (2, b); at 20 one (2, b) goes and (3, NULL) comes; final up to 30."""
    made = Stored(folder)
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    made.commit({20: Counter({(2, "b"): -1, (3, None): 1})}, 31)
    return made


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """For one test."""
    return example(tmp_path)


@pytest.fixture(scope="session")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the same, for tests that change nothing."""
    server = Server(example(tmp_path_factory.mktemp("reading")))
    with server.connect() as made:
        yield made
    server.close()


@pytest.fixture
def server(stored: Stored) -> Iterator[Server]:
    made = Server(stored)
    yield made
    made.close()


@pytest.fixture
def connection(server: Server) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as made:
        yield made


def eventually(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it comes to hold."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
