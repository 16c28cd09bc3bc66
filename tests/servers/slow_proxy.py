"""A proxy before an HTTP server, such as an object store: it counts requests, delays each, and loses or refuses some.

What is signed stays as it is: the server sees the proxy's own address as ``Host``, as the client has signed it.
"""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

Fault = Literal["503", "lost request", "lost answer", "cut"]
FAULTS: tuple[Fault, ...] = ("503", "lost request", "lost answer", "cut")
"""Throttled; the connection ends before the server gets the request, or after it has done it; half an answer."""
Answer = tuple[int, list[tuple[str, str]], bytes]
"""The status, the headers, and the body."""
_HOP = ("connection", "keep-alive", "transfer-encoding")


@dataclass
class SlowProxy:
    """A running proxy. ``delay``: seconds for each request. ``faults``: the share of requests that fail."""

    endpoint: str
    delay: float = 0.0
    faults: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """Each request's method and path, and the program that made it."""
    sizes: list[int] = field(default_factory=list)
    """The bytes of each answer."""
    failed: Counter[Fault] = field(default_factory=Counter)

    def take_bytes(self) -> int:
        """Those of the answers since the last call."""
        taken, self.sizes = self.sizes, []
        return sum(taken)

    def take(self) -> list[tuple[str, str, str]]:
        """The requests since the last call."""
        taken, self.seen = self.seen, []
        return taken

    def fault(self) -> Fault | None:
        """What happens to one request."""
        if self.chance.random() >= self.faults:
            return None
        fault = self.chance.choice(FAULTS)
        self.failed[fault] += 1
        return fault


@contextmanager
def slowed(
    endpoint: str, delay: float = 0.0, faults: float = 0.0, handler: type[Handler] | None = None
) -> Iterator[SlowProxy]:
    """A proxy before the server at ``endpoint``. ``handler``: one that also translates."""
    target = urlsplit(endpoint).netloc
    server = _Server(("127.0.0.1", 0), handler or Handler)
    server.proxy = SlowProxy(f"http://127.0.0.1:{server.server_address[1]}", delay, faults)
    server.target = target
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: SlowProxy
    target: str

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    keeps_host = True
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def _forward(self) -> None:
        proxy = self.server.proxy
        proxy.seen.append((self.command, self.path, self.headers.get("User-Agent", "")))
        body = self._body()
        time.sleep(proxy.delay)
        fault = proxy.fault()
        if fault == "lost request":
            self._hang_up()
        elif fault == "503":
            self._answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
        else:
            status, headers, data = self._asked(body)
            if fault == "lost answer":
                self._hang_up()
            else:
                self._answer(status, headers, data, is_cut=fault == "cut")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815 - the names are http.server's

    def handle_expect_100(self) -> bool:
        """Clients that ask first wait seconds for this answer, which is not to wait for the next one."""
        asked = super().handle_expect_100()
        self.wfile.flush()
        return asked

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _asked(self, body: bytes) -> Answer:
        return self._ask(self.command, self.path, body)

    def _ask(self, method: str, path: str, body: bytes) -> Answer:
        """The server's answer to a request with this one's headers."""
        for is_last in (False, True):
            if self._upstream is None:
                self._upstream = http.client.HTTPConnection(self.server.target, timeout=60)
                self._upstream.connect()
                self._upstream.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._upstream.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in (*_HOP, "expect", "content-length"):
                        is_other = name.lower() == "host" and not self.keeps_host
                        self._upstream.putheader(name, self.server.target if is_other else value)
                if body or method in ("PUT", "POST"):
                    self._upstream.putheader("Content-Length", str(len(body)))
                self._upstream.endheaders(body)
                found = self._upstream.getresponse()
                return found.status, found.getheaders(), found.read()
            except (http.client.HTTPException, OSError):
                self._upstream = None
                if is_last:
                    raise
        raise AssertionError("it has returned or raised")

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, *, is_cut: bool = False) -> None:
        self.send_response_only(status)
        lengths = [value for name, value in headers if name.lower() == "content-length"]
        for name, value in headers:
            if name.lower() not in (*_HOP, "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", lengths[0] if lengths and self.command == "HEAD" else str(len(data)))
        self.end_headers()
        self.server.proxy.sizes.append(len(data))
        self.wfile.write(data[: len(data) // 2] if is_cut else data)
        self.wfile.flush()
        if is_cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""
