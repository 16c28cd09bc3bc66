"""A server in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.serve.server import ServerOptions, Sockets, run
from dbt_incremental_dd.serve.write_timeout import DEFAULT_WRITE_TIMEOUT, WriteTimeout
from dbt_incremental_dd.untrusted.limits import Limits


@dataclass(frozen=True)
class Served:
    """``url`` without a slash at its end; ``wire``: the port of the Postgres protocol;
    ``root``: the state root."""

    port: int
    url: str
    wire: int
    root: str

    def socket(self, path: str) -> str:
        """The URL of a web socket."""
        return f"ws://127.0.0.1:{self.port}{path}"


@contextmanager
def serving(
    root: Path,
    token: str | None = None,
    pages: Path | None = None,
    port: int = 0,
    origins: tuple[str, ...] = (),
    write_timeout: WriteTimeout = DEFAULT_WRITE_TIMEOUT,
    limits: Limits | None = None,
    report: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> Iterator[Served]:
    """Serves the collections under a root while the block runs. ``options``: others of the server's."""
    stop = threading.Event()
    listening = ServerOptions(
        port=port,
        wire=0,
        token=token,
        origins=origins,
        pages=pages,
        write_timeout=write_timeout,
        limits=limits or Limits(),
        **options,
    )
    sockets = Sockets.of(listening)
    web, wire = (one.getsockname()[1] for one in (sockets.web, sockets.wire) if one is not None)
    work = run(Database(str(root)), listening, sockets, report, stop)
    thread = threading.Thread(target=asyncio.run, args=(work,), daemon=True)
    thread.start()
    try:
        yield Served(web, f"{'https' if listening.tls else 'http'}://127.0.0.1:{web}", wire, str(root))
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()
