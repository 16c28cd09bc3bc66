"""An ASGI middleware that refuses requests that ``Access`` does not allow, and bodies that are too large."""

from __future__ import annotations

import json
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from dbt_incremental_dd.serve.http import streams
from dbt_incremental_dd.serve.http.access import COOKIE, Access

MAX_BODY_BYTES = 1 << 20
"""Maximum size of a request's body."""


class AccessMiddleware:
    """Passes on the requests that ``access`` allows, and sets the token's cookie."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        refusal = self._access.refusal(connection)
        if refusal is not None and scope["type"] == "websocket":
            web = WebSocket(scope, receive, send)
            await web.accept()
            await streams.refuse(web, json.dumps({"error": refusal[1], "remedy": ""}))
            return
        if refusal is not None:
            answer = JSONResponse({"error": refusal[1], "remedy": ""}, refusal[0])
            await answer(scope, receive, send)
            return
        length = connection.headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MAX_BODY_BYTES:
            answer = JSONResponse({"error": f"a body has {MAX_BODY_BYTES} bytes at most", "remedy": ""}, 413)
            await answer(scope, receive, send)
            return
        token = connection.query_params.get("token") if self._access.token else None

        async def send_with_cookie(message: Message) -> None:
            if token and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append(
                    "set-cookie", f"{COOKIE}={quote(token)}; HttpOnly; SameSite=Strict"
                )
            await send(message)

        await self._app(scope, _bounded(receive), send_with_cookie if token else send)


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
