"""The server: its sockets, and its life from start to shutdown."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.serve.audit import AuditLog
from dbt_incremental_dd.serve.gate import Gate
from dbt_incremental_dd.serve.http.access import Access, is_loopback
from dbt_incremental_dd.serve.http.application import application
from dbt_incremental_dd.serve.http.write_timeout_middleware import WriteTimeoutMiddleware
from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.serve.metrics import Metrics
from dbt_incremental_dd.serve.os_limits import BACKLOG, limit_unsent_bytes, raise_open_file_limit
from dbt_incremental_dd.serve.pgwire.listener import listen
from dbt_incremental_dd.serve.query_pool import QueryPool
from dbt_incremental_dd.serve.recorder import Observer, Recorder
from dbt_incremental_dd.serve.tls import server_context
from dbt_incremental_dd.serve.users.authenticator import Authenticator
from dbt_incremental_dd.serve.users.sessions import CHECK_SECONDS, Sessions
from dbt_incremental_dd.serve.users.users_file import Users, read_users
from dbt_incremental_dd.serve.watched_files import WatchedFiles
from dbt_incremental_dd.serve.write_timeout import DEFAULT_WRITE_TIMEOUT, WriteTimeout
from dbt_incremental_dd.untrusted.limits import Limits

_THREADS = 32
"""Threads that read files for everything but SELECTs, which have their own."""
_LAST_PORT = 65_535
_STOP_POLL_SECONDS = 0.1
"""Interval at which ``stop`` is checked."""


@dataclass(frozen=True)
class ServerOptions:
    """``port``: for HTTP; ``wire``: for the Postgres protocol, None to leave it off. 0 chooses a free port.
    ``write_timeout``: for clients that do not read. ``users``: the file of users; ``tls``: the certificate and its key;
    ``behind_proxy``: whoever reaches a public host without TLS comes from a proxy that has it.

    Raises ConfigError for an empty token, a missing folder of pages, or a public host without tokens, or with users and
    without TLS."""

    host: str = "127.0.0.1"
    port: int = 8580
    wire: int | None = None
    token: str | None = None
    origins: tuple[str, ...] = ()
    pages: Path | None = None
    write_timeout: WriteTimeout = DEFAULT_WRITE_TIMEOUT
    limits: Limits = field(default_factory=Limits)
    users: Path | None = None
    tls: tuple[Path, Path] | None = None
    behind_proxy: bool = False
    audit: Path | None = None
    metrics: bool = False

    def __post_init__(self) -> None:
        if self.pages is not None and not self.pages.is_dir():
            raise ConfigError(f"there is no folder {self.pages} to serve pages of", "Give a folder with an index.html.")
        if self.token is not None and not self.token.strip():
            raise ConfigError("the token is empty", "Give one that cannot be guessed, or none.")
        if is_loopback(self.host):
            return
        if self.token is None and self.users is None:
            raise ConfigError(
                f"whoever reaches {self.host} could read all collections",
                "Set a token, as DBT_DD_TOKEN in the environment, name --users, or listen on 127.0.0.1.",
            )
        if self.users is not None and self.tls is None and not self.behind_proxy:
            raise ConfigError(
                f"without TLS, tokens of users would be readable on their way to {self.host}",
                "Set --tls-cert and --tls-key, or --behind-proxy if a proxy in front of the server has TLS.",
            )


def serve(database: Database, options: ServerOptions, report: Callable[[str], None] = print) -> None:
    """Serves until interrupted. Raises ConfigError if it cannot listen."""
    sockets = Sockets.of(options)
    raise_open_file_limit(report)
    if not database.collections():
        report(f"There are no collections under {database.storage.root} yet: they show when there are.")
    asyncio.run(run(database, options, sockets, report))


async def run(
    database: Database,
    options: ServerOptions,
    sockets: Sockets,
    report: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Serves on bound sockets in the running event loop, until it is interrupted or ``stop`` is set."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="serve"))
    queries = QueryPool(database.storage, options.limits)
    parts = _Parts.of(options, database, report)
    gate = Gate(Hub(database), queries, Sessions(parts.authenticator), parts.recorder)
    app = application(gate, Access(options.host, options.origins), options.pages, parts.metrics)
    with_timeout = WriteTimeoutMiddleware(app, options.write_timeout, lambda client: server.transport(client))
    config = uvicorn.Config(
        with_timeout, log_level="warning", ws_max_size=65_536, timeout_graceful_shutdown=2, backlog=BACKLOG
    )
    config.load()
    config.ssl = parts.tls
    server = _Server(config, gate.hub)
    host = f"[{options.host}]" if ":" in options.host else options.host
    scheme = "http" if parts.tls is None else "https"
    report(f"Collections of {database.storage.root} at {scheme}://{host}:{_port(sockets.web)}/")
    wire = None
    if sockets.wire is not None:
        wire = await listen(gate, sockets.wire, parts.tls, options.write_timeout)
        report(f"and by the Postgres protocol: psql -h {options.host} -p {wire.port} dd")
    tasks = [server.end_when_set(stop or threading.Event()), *parts.tasks(gate.sessions)]
    running = [asyncio.create_task(one) for one in tasks]
    try:
        await server.serve(sockets=[sockets.web])
    finally:
        for task in running:
            task.cancel()
        if wire is not None:
            await wire.close()
        queries.close()
        parts.close()


def _users(path: Path, database: Database, report: Callable[[str], None]) -> Users:
    """The file of users. Reports conditions that limit nothing."""
    found = read_users(path)
    for pattern in found.unmatched([place.name for place in database.places()]):
        report(f"WARNING: {path.name}: there is no collection {pattern}, whose rows it limits. Is it misspelt?")
    return found


@dataclass(frozen=True)
class _Parts:
    """What the options make of files. ``certificate``: those of ``tls``."""

    authenticator: Authenticator
    recorder: Recorder
    tls: ssl.SSLContext | None = None
    certificate: WatchedFiles[None] | None = None
    audit: AuditLog | None = None
    metrics: Metrics | None = None

    @staticmethod
    def of(options: ServerOptions, database: Database, report: Callable[[str], None]) -> _Parts:
        """Raises ConfigError if a file is wrong."""
        users = tls = certificate = audit = None
        if (path := options.users) is not None:
            users = WatchedFiles((path,), lambda: _users(path, database, report), report)
        if options.tls is not None:
            tls, certificate = server_context(*options.tls, report)
        if options.audit is not None:
            audit = AuditLog(options.audit, report)
        metrics = Metrics() if options.metrics else None
        observers: list[Observer] = [one for one in (audit, metrics) if one is not None]
        return _Parts(
            Authenticator(options.token, users), Recorder(observers, report), tls, certificate, audit, metrics
        )

    def tasks(self, sessions: Sessions) -> Iterator[Coroutine[Any, Any, None]]:
        """What keeps them as the files are."""
        if self.authenticator.can_change:
            yield sessions.watch()
        if self.certificate is not None:
            yield _keep_fresh(self.certificate)

    def close(self) -> None:
        """Writes what is still to be written."""
        if self.audit is not None:
            self.audit.close()


async def _keep_fresh(files: WatchedFiles[None]) -> None:
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        files.refresh()  # not in a thread: OpenSSL's contexts must not change while a handshake reads them


class _Server(uvicorn.Server):
    """A uvicorn server that ends all subscriptions before it waits for its clients."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub = hub

    def transport(self, client: object) -> asyncio.WriteTransport | None:
        """The transport of a client's connection; None if there is none."""
        for protocol in self.server_state.connections:
            if getattr(protocol, "client", None) == client:
                return protocol.transport
        return None

    def end(self) -> None:
        """Starts the shutdown."""
        self.should_exit = True
        self._hub.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Starts the shutdown on a signal."""
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self.end)

    async def end_when_set(self, stop: threading.Event) -> None:
        """Starts the shutdown once ``stop`` is set."""
        while not stop.is_set():
            await asyncio.sleep(_STOP_POLL_SECONDS)
        self.end()


@dataclass(frozen=True)
class Sockets:
    """The listening sockets: ``web`` for HTTP, ``wire`` for the Postgres protocol."""

    web: socket.socket
    wire: socket.socket | None = None

    @staticmethod
    def of(options: ServerOptions) -> Sockets:
        """Bound sockets. Raises ConfigError if one cannot be bound."""
        host, wire, write_timeout = options.host, options.wire, options.write_timeout
        web = bind(host, options.port, write_timeout)
        return Sockets(web, None if wire is None else bind(host, wire, write_timeout))


def _port(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


def bind(host: str, port: int, write_timeout: WriteTimeout = DEFAULT_WRITE_TIMEOUT) -> socket.socket:
    """A listening socket. Raises ConfigError with the reason if it cannot be bound."""
    if not 0 <= port <= _LAST_PORT:  # the resolver takes the number modulo 65,536
        raise ConfigError(f"there is no port {port}", f"Give one up to {_LAST_PORT}, or 0 for any that is free.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        raise ConfigError(f"nothing can listen on {host}, port {port}: {error}", "Give another one.") from error
    limit_unsent_bytes(made, write_timeout.seconds)
    made.setblocking(False)
    return made
