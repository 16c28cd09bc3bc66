"""What stands before the HTTP application: who is let in."""

from __future__ import annotations

import json
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from dbt_incremental_dd.serve import streams
from dbt_incremental_dd.serve.access import COOKIE, Access

BODY = 1 << 20
"""Bytes of a request's body, at most."""


class Guard:
    """Answers whom ``access`` lets in."""

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
        if not length.isascii() or not length.isdigit() or int(length[:20]) > BODY:
            answer = JSONResponse({"error": f"a body has {BODY} bytes at most", "remedy": ""}, 413)
            await answer(scope, receive, send)
            return
        token = connection.query_params.get("token") if self._access.token else None

        async def remembering(message: Message) -> None:
            if token and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append(
                    "set-cookie", f"{COOKIE}={quote(token)}; HttpOnly; SameSite=Strict"
                )
            await send(message)

        await self._app(scope, _bounded(receive), remembering if token else send)


def _bounded(receive: Receive) -> Receive:
    """A client that sends more than ``BODY`` bytes in parts counts as gone."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > BODY:
                return {"type": "http.disconnect"}
        return message

    return bounded
