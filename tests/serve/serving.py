"""A server in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.serve.server import Listening, bind, run


@dataclass(frozen=True)
class Served:
    """``url`` without a slash at its end."""

    port: int
    url: str

    def socket(self, path: str) -> str:
        """The URL of a web socket."""
        return f"ws://127.0.0.1:{self.port}{path}"


@contextmanager
def serving(
    root: Path, token: str | None = None, pages: Path | None = None, port: int = 0, origins: tuple[str, ...] = ()
) -> Iterator[Served]:
    """Serves the collections under a root while the block runs."""
    bound, stop = bind("127.0.0.1", port), threading.Event()
    listening = Listening(port=bound.getsockname()[1], token=token, origins=origins, pages=pages)
    work = run(Database(str(root)), listening, bound, lambda _: None, stop)
    thread = threading.Thread(target=asyncio.run, args=(work,), daemon=True)
    thread.start()
    try:
        yield Served(listening.port, f"http://127.0.0.1:{listening.port}")
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()
