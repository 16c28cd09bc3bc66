"""Subscriptions over HTTP: as server-sent events, and over a web socket, each at the pace of its client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.hub import Follower, Hub
from dbt_incremental_dd.serve.messages import BYTES, Message, failure, messages
from dbt_incremental_dd.serve.wanted import Wanted
from dbt_incremental_dd.subscribe.subscription import Batch

T = TypeVar("T")
QUIET = 15.0
"""Seconds after which a stream on which nothing happens says that it is still there."""
_SMALL = 2_000
"""Rows of a batch whose messages are kept for others."""
REFUSED, FAILED = 4400, 1011
"""Why a socket is closed: by what was asked, or by what happened."""


async def events(hub: Hub, collection: Collection, asked: Wanted) -> AsyncGenerator[bytes]:
    """A subscription as server-sent events. ``id`` is the time up to which the client has all; the last event is
    ``ended`` or ``failed``. Raises what is wrong with the request when the first one is asked for."""
    start, shape = await hub.run(lambda: (asked.start(collection), asked.shape(collection)))
    async with hub.follow(collection, start, shape) as follower:
        yield b"retry: 1000\n\n"
        try:
            while not follower.is_over:
                batch = await follower.batch(QUIET)
                if batch is None:
                    yield b": still there\n\n"
                    continue
                async for event in _told(hub, follower, batch, progress=asked.progress, form=_event):
                    yield event
        except DifferentialError as error:
            yield f"event: failed\ndata: {failure(error)}\n\n".encode()
            return
        if follower.subscription.has_ended:
            yield b"event: ended\ndata: {}\n\n"


def _event(message: Message) -> bytes:
    told = f"data: {message.data}\n" if message.data else ""
    at = "" if message.at is None else f"id: {message.at}\n"
    return f"{told}{at}\n".encode()


async def socket(hub: Hub, collection: Collection, asked: Wanted, web: WebSocket) -> None:
    """A subscription over an accepted web socket, until it ends or the client leaves. A client that sends anything is
    told that it cannot."""
    listening = asyncio.create_task(web.receive())
    telling = asyncio.create_task(_tell(hub, collection, asked, web))
    try:
        await asyncio.wait([listening, telling], return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            await telling
            await web.close(1000)
        elif listening.result()["type"] != "websocket.disconnect":
            await refuse(
                web, json.dumps({"error": "this socket tells, and does not listen", "remedy": "Open another."})
            )
    except DifferentialError as error:
        await refuse(web, failure(error))
    except (WebSocketDisconnect, RuntimeError) as error:
        # An error's frames would keep the batch that was being told until the garbage collector comes by.
        traceback.clear_frames(error.__traceback__)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await web.close(FAILED)
    finally:
        for task in (listening, telling):
            task.cancel()
        await asyncio.gather(listening, telling, return_exceptions=True)


async def refuse(web: WebSocket, why: str) -> None:
    """Tells why, and closes it."""
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await web.send_text(why)
        await web.close(REFUSED)


async def _tell(hub: Hub, collection: Collection, asked: Wanted, web: WebSocket) -> None:
    start, shape = await hub.run(lambda: (asked.start(collection), asked.shape(collection)))
    async with hub.follow(collection, start, shape) as follower:
        async for batch in follower.batches():
            async for text in _told(hub, follower, batch, progress=asked.progress, form=_text):
                if text:
                    await web.send_text(text)


def _text(message: Message) -> str:
    return message.data


async def _told(
    hub: Hub, follower: Follower, batch: Batch, *, progress: bool, form: Callable[[Message], T]
) -> AsyncIterator[T]:
    """A batch's messages in their form; those of a small one are made once for all that have the same."""
    if batch.updates.num_rows <= _SMALL and batch.updates.nbytes <= BYTES:
        key = (form, batch.after, batch.upper, follower.subscription.shape, progress)
        made: list[T] = follower.shared.memo.get(
            key, lambda: [form(one) for one in messages(batch, progress=progress)], _bytes
        )
        for one in made:
            yield one
        return
    waiting = messages(batch, progress=progress)

    def following() -> Message | None:
        return next(waiting, None)

    while (told := await hub.run(following)) is not None:
        yield form(told)


def _bytes(made: list[Any]) -> int:
    return sum(len(one) for one in made)
