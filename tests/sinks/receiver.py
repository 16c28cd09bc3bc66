"""A receiver of webhooks, and rows that change at random for it."""

from __future__ import annotations

import base64
import hmac
import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dbt_incremental_dd.sinks.webhook import Sink
from dbt_incremental_dd.sinks.webhook_delivery import RESENT
from tests.subscribe.stored import Stored

_KEY = b"of the tests"
SECRET_TEXT = f"whsec_{base64.b64encode(_KEY).decode()}"


class Receiver:
    """Answers requests by ``answer``, a status; notes what it has taken."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.requests: list[tuple[str, int, str | None, dict[str, Any]]] = []
        """Each with its id, the answer, how often it says that it was rejected before, and its event."""
        self.answer: Callable[[dict[str, Any]], int] = lambda event: 200
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver.receive(self, self.rfile.read(int(self.headers["content-length"])))

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def receive(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        id, seconds = request.headers["webhook-id"], request.headers["webhook-timestamp"]
        signed = hmac.digest(_KEY, f"{id}.{seconds}.".encode() + body, "sha256")
        assert request.headers["webhook-signature"] == f"v1,{base64.b64encode(signed).decode()}"
        event = json.loads(body)
        with self._lock:
            status = self.answer(event)
            self.requests.append((id, status, request.headers[RESENT], event))
            if status in (0, 200):
                self.taken.append(event)
                self.ids.append(id)
        if status == 0:  # the answer gets lost
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        request.send_response(status)
        request.send_header("content-length", "0")
        if status == 429:
            request.send_header("retry-after", "0")
        request.end_headers()


def sink_to(receiver: Receiver, **settings: Any) -> Sink:
    """The receiver, with short waits."""
    return Sink(receiver.url, ("k",), secret=SECRET_TEXT, **{"wait": 0.002, "attempts": 60, **settings})


def rounds(
    stored: Stored, chance: random.Random, first: int, count: int, before: dict[int, str] | None = None
) -> dict[int, str]:
    """So many times with a dozen changes each, of the rows before; the rows at the end, by key."""
    rows = dict(before or {})
    for t in range(first, first + count):
        changes: Counter[tuple[int, str | None]] = Counter()
        for key in chance.sample(range(30), 12):
            if key in rows:
                changes[key, rows.pop(key)] -= 1
            if chance.random() < 0.8:
                rows[key] = f"{key} at {t}"
                changes[key, rows[key]] += 1
        stored.commit({t: changes}, t + 1)
    return rows
