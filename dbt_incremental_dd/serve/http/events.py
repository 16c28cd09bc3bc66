"""The route that takes events for sources."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from dbt_incremental_dd.serve.http.access_middleware import MAX_EVENT_BYTES, sender_of
from dbt_incremental_dd.serve.http.event_lines import ARRAY, LINES, event_lines
from dbt_incremental_dd.serve.sender import Refused, Sender

_AT_ONCE = 32
"""Bodies that are held at a time; others are not read yet."""
_BODY_SECONDS = 60
_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_EVENT = {"type": "object", "additionalProperties": True}
_OPENAPI = {
    "requestBody": {
        "required": True,
        "content": {
            LINES[0]: {"schema": {"type": "string"}, "example": '{"id": 1}\n{"id": 2}\n'},
            ARRAY: {"schema": {"oneOf": [{"type": "array", "items": _EVENT}, _EVENT]}},
        },
    }
}
Sendable = Annotated[Sender, Depends(sender_of)]
IdempotencyKey = Annotated[
    str | None, Header(description="names the request: sent again with it, the same events count once")
]


def events_router() -> APIRouter:
    """The routes for one application."""
    router, room = APIRouter(), asyncio.Semaphore(_AT_ONCE)

    @router.post(
        "/sources/{name}/events",
        status_code=202,
        summary="Takes events for a source, which the next run reads",
        openapi_extra=_OPENAPI,
    )
    async def events(
        request: Request, sender: Sendable, name: str, idempotency_key: IdempotencyKey = None
    ) -> dict[str, Any]:
        source = name.lower()
        sender.require(source)
        _check(request, idempotency_key)
        async with room:
            body = await _body(request)
            return await run_in_threadpool(_send, sender, source, idempotency_key, body, _content_type(request))

    return router


def _send(sender: Sender, source: str, key: str | None, body: bytes, content_type: str) -> dict[str, Any]:
    lines, count = event_lines(body, content_type)
    return {"source": source, "events": count, "key": sender.send(source, key, lines, count)}


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "")


def _check(request: Request, key: str | None) -> None:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise Refused(415, f"bodies are not read in Content-Encoding {encoding}", "Send them as they are.")
    if key is not None and not _KEY.fullmatch(key):
        raise Refused(400, "the Idempotency-Key is not 1 to 255 printable ASCII characters", "Use a UUID, for example.")


async def _body(request: Request) -> bytes:
    """The whole body. Raises Refused if it is too large, takes too long, or ends early."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MAX_EVENT_BYTES:
                    raise Refused(
                        413, f"a request has {MAX_EVENT_BYTES} bytes at most", "Send the events in several requests."
                    )
                parts.append(part)
    except TimeoutError as error:
        raise Refused(408, f"the body has not come within {_BODY_SECONDS} seconds", "Send it again.") from error
    except ClientDisconnect as error:
        raise Refused(400, "the request has ended within its body", "Send it again.") from error
    return b"".join(parts)
