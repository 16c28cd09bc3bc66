"""Subscriptions over HTTP, as server-sent events or over a web socket, each at the pace of its client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.cleared_frames import cleared_frames
from dbt_incremental_dd.serve.http.messages import ClientMessage, error_json, messages
from dbt_incremental_dd.serve.http.query_params import SubscribeParams
from dbt_incremental_dd.serve.hub import Follower
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.subscribe.chunks import CHUNK_BYTES
from dbt_incremental_dd.subscribe.subscription import Batch

T = TypeVar("T")
KEEPALIVE_SECONDS = 15.0
"""Interval at which a quiet stream sends a comment to keep its connection open."""
_MAX_SHARED_ROWS = 2_000
"""Batches of at most this many rows are encoded once for all followers."""
REFUSED, FAILED = 4400, 1011
"""Close codes of a web socket: an invalid request, and an error of the connection."""


async def event_stream(reader: Reader, collection: Collection, params: SubscribeParams) -> AsyncGenerator[bytes]:
    """A subscription as server-sent events. ``id`` is the time up to which the client has everything; the last event is
    ``ended`` or ``failed``. Errors in the request are raised when the first event is requested."""
    start, shape = await reader.run(lambda: (params.start(collection), params.shape(collection)))
    reader.usage.as_of = start.as_of
    async with reader.follow(collection, start, shape) as follower:
        yield b"retry: 1000\n\n"
        try:
            with cleared_frames():
                async for event in _encoded(reader, follower, params, _event, KEEPALIVE_SECONDS):
                    yield b": still there\n\n" if event is None else event
        except DifferentialError as error:
            yield f"event: failed\ndata: {error_json(error)}\n\n".encode()
            return
        if follower.subscription.has_ended:
            yield b"event: ended\ndata: {}\n\n"


def _event(message: ClientMessage) -> bytes:
    data = f"data: {message.data}\n" if message.data else ""
    at = "" if message.at is None else f"id: {message.at}\n"
    return f"{data}{at}\n".encode()


async def serve_socket(reader: Reader, collection: Collection, params: SubscribeParams, web: WebSocket) -> None:
    """Sends a subscription over an accepted web socket, until it ends or the client disconnects. A client that sends
    anything is refused."""
    receiving = asyncio.create_task(web.receive())
    sending = asyncio.create_task(_send(reader, collection, params, web))
    try:
        await asyncio.wait([receiving, sending], return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            await sending
            await web.close(1000)
        elif receiving.result()["type"] != "websocket.disconnect":
            await refuse(web, json.dumps({"error": "this socket accepts no messages", "remedy": "Open another."}))
    except DifferentialError as error:
        await refuse(web, error_json(error))
    except (WebSocketDisconnect, RuntimeError):
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await web.close(FAILED)
    finally:
        for task in (receiving, sending):
            task.cancel()
        await asyncio.gather(receiving, sending, return_exceptions=True)


async def refuse(web: WebSocket, why: str) -> None:
    """Sends the reason, and closes the socket."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await web.send_text(why)
        await web.close(REFUSED)


async def _send(reader: Reader, collection: Collection, params: SubscribeParams, web: WebSocket) -> None:
    start, shape = await reader.run(lambda: (params.start(collection), params.shape(collection)))
    reader.usage.as_of = start.as_of
    async with reader.follow(collection, start, shape) as follower:
        with cleared_frames():
            async for text in _encoded(reader, follower, params, _text):
                if text:
                    await web.send_text(text)


def _text(message: ClientMessage) -> str:
    return message.data


async def _encoded(
    reader: Reader,
    follower: Follower,
    params: SubscribeParams,
    form: Callable[[ClientMessage], T],
    timeout: float | None = None,
) -> AsyncIterator[T | None]:
    """All messages until the subscription is over, and None whenever no batch came for ``timeout`` seconds."""
    while not follower.is_over:
        batch = await follower.batch(timeout)
        if batch is None:
            yield None
            continue
        async for message in _encode(reader, follower, batch, progress=params.progress, form=form):
            yield message
        reader.usage.rows += batch.updates.num_rows


async def _encode(
    reader: Reader, follower: Follower, batch: Batch, *, progress: bool, form: Callable[[ClientMessage], T]
) -> AsyncIterator[T]:
    """A batch's messages, encoded by ``form``. Messages of a small batch are encoded once for all followers of this
    shape."""
    if batch.updates.num_rows <= _MAX_SHARED_ROWS and batch.updates.nbytes <= CHUNK_BYTES:
        key = (form, batch.after, batch.upper, follower.subscription.shape, progress)
        encoded: list[T] = follower.shared.memo.get(
            key, lambda: [form(one) for one in messages(batch, progress=progress)], _size
        )
        for one in encoded:
            yield one
        return
    pending = messages(batch, progress=progress)

    def next_message() -> ClientMessage | None:
        return next(pending, None)

    while (data := await reader.run(next_message)) is not None:
        yield form(data)


def _size(encoded: list[Any]) -> int:
    return sum(len(one) for one in encoded)
