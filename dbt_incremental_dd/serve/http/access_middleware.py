"""An ASGI middleware that lets in who has a token, refuses requests that ``Access`` does not allow and bodies that are
too large, and records each access."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from dbt_incremental_dd.serve.gate import Gate
from dbt_incremental_dd.serve.http import streams
from dbt_incremental_dd.serve.http.access import COOKIE, SEND, Access, tokens_of
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.serve.recorder import Recorder
from dbt_incremental_dd.serve.sender import Sender
from dbt_incremental_dd.serve.usage import Usage
from dbt_incremental_dd.serve.users.authenticator import Login
from dbt_incremental_dd.serve.users.sessions import LoginEnded

MAX_BODY_BYTES = 1 << 20
"""Maximum size of a request's body, unless it has events."""
MAX_EVENT_BYTES = 8 << 20
"""Maximum size of a body of events, which its route checks as it reads it."""
_MAX_PATH = 500
"""Characters of a refused request's path that are recorded."""
_NEEDED = "a token is needed: as `Authorization: Bearer ...`, or as `?token=...`"


def reader_of(connection: HTTPConnection) -> Reader:
    """What the client of a request may read."""
    found: Reader = connection.scope["state"]["reader"]
    return found


def sender_of(connection: HTTPConnection) -> Sender:
    """What the client of a request may send."""
    found: Sender = connection.scope["state"]["sender"]
    return found


def recorder_of(connection: HTTPConnection) -> Recorder:
    """The recorder of accesses."""
    found: Recorder = connection.scope["state"]["recorder"]
    return found


Readable = Annotated[Reader, Depends(reader_of)]
"""A route's parameter: what its client may read."""


class AccessMiddleware:
    """Passes on the requests that ``access`` allows and ``gate`` lets in, and sets the token's cookie."""

    def __init__(self, app: ASGIApp, access: Access, gate: Gate) -> None:
        self._app = app
        self._access = access
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        protocol = "websocket" if scope["type"] == "websocket" else "http"
        usage = Usage(protocol, "", ":".join(str(part) for part in scope.get("client") or ()))
        answer = _Answer(usage, send)
        try:
            await self._answer(connection, usage, receive, answer)
        finally:
            usage.status = usage.status or "499"
            self._gate.recorder.ended(usage)

    async def _answer(self, connection: HTTPConnection, usage: Usage, receive: Receive, answer: _Answer) -> None:
        scope = connection.scope
        refusal = self._access.refusal(connection)
        found = None if refusal is not None else await self._login(connection)
        if refusal is None and found is None:
            refusal = 401, _NEEDED
        if refusal is None and _is_too_large(connection):
            refusal = 413, f"a body has {_max_bytes(connection)} bytes at most"
        if refusal is not None or found is None:
            usage.action, usage.path = "refused", scope["path"][:_MAX_PATH]
            await _refuse(*(refusal or (401, _NEEDED)), scope, receive, answer)
            return
        login, token = found
        usage.user = login.user.name
        reader, sender = self._gate.reader(login, usage), self._gate.sender(login, usage)
        scope.setdefault("state", {}).update(reader=reader, sender=sender, recorder=self._gate.recorder)
        if self._gate.authenticator.needs_token and connection.query_params.get("token") == token:
            secure = "; Secure" if scope.get("scheme") in ("https", "wss") else ""
            answer.cookie = f"{COOKIE}={quote(token)}; HttpOnly; SameSite=Strict{secure}"
        bounded = receive if _sends(connection) else _bounded(receive)
        try:
            await self._gate.sessions.run(login, self._pass(scope, bounded, answer.send))
        except LoginEnded as ended:
            await answer.end(scope, receive, str(ended))

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _login(self, connection: HTTPConnection) -> tuple[Login, str] | None:
        """The login of a request, and its token; None if it has no valid one."""
        for token in tokens_of(connection) if self._gate.authenticator.needs_token else [""]:
            login = await self._gate.authenticator.login(token)
            if login is not None:
                return login, token
        return None


@dataclass
class _Answer:
    """What is sent to the client. ``cookie``: sent with it."""

    usage: Usage
    _send: Send
    cookie: str = ""
    _begun: Message = field(default_factory=dict)

    async def send(self, message: Message) -> None:
        """Sends a message, and notes its status and size."""
        if message["type"] in ("http.response.start", "websocket.accept"):
            self._begun = message
            self.usage.status = str(message.get("status", 101))
            if self.cookie and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", self.cookie)
        if message["type"] == "websocket.close" and message.get("code", 1000) != 1000:
            self.usage.status = str(message["code"])
        await self._send(message)
        self.usage.bytes += len(message.get("body", b"")) + len((message.get("text") or "").encode())

    async def end(self, scope: Scope, receive: Receive, reason: str) -> None:
        """Ends it, at whatever it has come to, with a reason. A body that is not complete is broken off."""
        self.usage.status = "401"
        if not self._begun:
            await _refuse(401, reason, scope, receive, self)
        elif scope["type"] == "websocket":
            with contextlib.suppress(RuntimeError, OSError):
                await self._send({"type": "websocket.send", "text": _error(reason)})
                await self._send({"type": "websocket.close", "code": streams.REFUSED, "reason": ""})
        elif (b"content-type", b"text/event-stream; charset=utf-8") in _headers(self._begun):
            with contextlib.suppress(RuntimeError, OSError):
                event = f"event: failed\ndata: {_error(reason)}\n\n".encode()
                await self._send({"type": "http.response.body", "body": event, "more_body": False})


def _headers(message: Message) -> list[tuple[Any, Any]]:
    return [(bytes(name).lower(), bytes(value).lower()) for name, value in message.get("headers", ())]


def _error(reason: str) -> str:
    return json.dumps({"error": reason, "remedy": ""})


async def _refuse(status: int, reason: str, scope: Scope, receive: Receive, answer: _Answer) -> None:
    if scope["type"] == "websocket":
        web = WebSocket(scope, receive, answer.send)
        await web.accept()
        await streams.refuse(web, _error(reason))
        answer.usage.status = str(status)
        return
    await JSONResponse({"error": reason, "remedy": ""}, status)(scope, receive, answer.send)


def _is_too_large(connection: HTTPConnection) -> bool:
    length = connection.headers.get("content-length", "0")
    return not length.isascii() or not length.isdigit() or int(length[:20]) > _max_bytes(connection)


def _max_bytes(connection: HTTPConnection) -> int:
    return MAX_EVENT_BYTES if _sends(connection) else MAX_BODY_BYTES


def _sends(connection: HTTPConnection) -> bool:
    """Whether it has events, whose route reads no more of a body than it may have."""
    return connection.url.path.startswith(SEND)


def _bounded(receive: Receive) -> Receive:
    """Reports a client that sends more than ``MAX_BODY_BYTES`` bytes in parts as disconnected."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > MAX_BODY_BYTES:
                return {"type": "http.disconnect"}
        return message

    return bounded
