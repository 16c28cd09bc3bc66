"""An HTTP server that keeps what it is sent, and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """``answer``: the status of the next answer; 0: none, the connection is closed. It may take its time."""

    url: str
    answer: Callable[[], int]
    bodies: list[bytes] = field(default_factory=list)
    """Those that were answered with success."""
    paths: list[str] = field(default_factory=list)


@contextmanager
def receiver(answer: Callable[[], int] = lambda: 200) -> Iterator[Receiver]:
    """One that listens on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = found.answer()
            if not status:
                self.close_connection = True
                return
            if status < 300:
                found.bodies.append(body)
                found.paths.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    found = Receiver(f"http://127.0.0.1:{server.server_address[1]}", answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
