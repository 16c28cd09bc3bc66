"""The HTTP application: collections, their rows, their changes, and pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import (
    ConfigError,
    DifferentialError,
    FrontierError,
    QueryCanceled,
    QueryError,
    ServerBusy,
    StateError,
)
from dbt_incremental_dd.core.time import Time, parse_time
from dbt_incremental_dd.serve import listing, streams
from dbt_incremental_dd.serve.access import Access
from dbt_incremental_dd.serve.answers import Rows, Statement, rows_of
from dbt_incremental_dd.serve.guard import Guard
from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.serve.messages import failure
from dbt_incremental_dd.serve.queries import Queries
from dbt_incremental_dd.serve.vega import script
from dbt_incremental_dd.serve.wanted import Asked, AsOf, Select, Where
from dbt_incremental_dd.version import version

_STATIC = Path(__file__).parent / "static"
_STATUS: dict[type[DifferentialError], int] = {
    **{FrontierError: 410, ConfigError: 400, QueryError: 400, StateError: 404},
    **{QueryCanceled: 408, ServerBusy: 503},
}
_STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_RESERVED = {"select", "where", "as_of", "limit", "token"}
Limit = Annotated[int, Query(ge=1, le=2**31 - 1, description="rows at most")]


def application(
    database: Database, access: Access, pages: Path | None = None, queries: Queries | None = None
) -> FastAPI:
    """``pages``: a folder whose files are served at ``/``, before the server's own. ``queries``: what answers
    SELECTs, by default its own."""
    app = FastAPIOffline(title="Differential collections", version=version, docs_url="/docs", redoc_url=None)
    app.state.hub = Hub(database)
    app.include_router(_router(app.state.hub, queries or Queries(database.storage)))
    app.add_exception_handler(DifferentialError, _refusal)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_middleware(Guard, access=access)
    if access.origins:
        # Browsers ask before they let a page of another site read, and without the token.
        app.add_middleware(
            CORSMiddleware, allow_origins=access.origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    app.mount("/", _Pages(_STATIC, pages))
    return app


def _router(hub: Hub, queries: Queries) -> APIRouter:
    router = APIRouter()

    @router.get("/collections", summary="All collections with their frontiers")
    def collections() -> list[dict[str, Any]]:
        return listing.described(hub)

    @router.get("/frontiers", summary="The same as server-sent events: all, and then each that changes")
    async def frontiers() -> StreamingResponse:
        return StreamingResponse(listing.changes(hub), media_type="text/event-stream", headers=_STREAM)

    @router.get("/collections/{name}", summary="One collection")
    def collection(name: str) -> dict[str, Any]:
        return listing.describe(hub, hub.database.find(name))

    @router.get("/collections/{name}/rows", summary="Its rows now, or as of a time; `?column=value` for some of them")
    async def rows(
        request: Request, name: str, select: Select = None, where: Where = None, as_of: AsOf = None, limit: Limit = 1000
    ) -> Response:
        found = await run_in_threadpool(hub.database.find, name)
        equal = {column: value for column, value in request.query_params.items() if column not in _RESERVED}
        sql, values = rows_of(found, select, where, equal)
        return Rows(queries, Statement(sql, values, _time(as_of), limit))

    @router.post("/sql", summary="The rows of a SELECT over collections, all read as of one time")
    async def sql(statement: Annotated[str, Body(embed=True)], as_of: AsOf = None, limit: Limit = 1000) -> Response:
        return Rows(queries, Statement(statement, (), _time(as_of), limit))

    @router.get("/collections/{name}/changes", summary="Its rows, and then every change, as server-sent events")
    async def changes(name: str, asked: Asked) -> Response:
        return await _stream(streams.events(hub, await hub.run(hub.database.find, name), asked))

    @router.websocket("/collections/{name}/changes")
    async def changes_socket(web: WebSocket, name: str, asked: Asked) -> None:
        await web.accept()
        try:
            found = await hub.run(hub.database.find, name)
        except DifferentialError as error:
            await streams.refuse(web, failure(error))
            return
        await streams.socket(hub, found, asked, web)

    @router.get("/assets/vega.js", include_in_schema=False)
    def vega() -> Response:
        return Response(script(), media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    @router.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        """Browsers ask for it whatever a page says."""
        return FileResponse(_STATIC / "icon.svg", media_type="image/svg+xml")

    return router


def _time(as_of: str | None) -> Time | None:
    return None if as_of is None else parse_time(as_of)


async def _stream(events: AsyncGenerator[bytes]) -> Response:
    """What is wrong with the request is told as such: the first event is there before the answer begins."""
    return _Events(await anext(events), events)


class _Events(StreamingResponse):
    """Ends what is followed as soon as its client is gone or let go, however that comes about."""

    def __init__(self, first: bytes, events: AsyncGenerator[bytes]) -> None:
        async def told() -> AsyncIterator[bytes]:
            yield first
            async for event in events:
                yield event

        super().__init__(told(), media_type="text/event-stream", headers=_STREAM)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()


def _invalid(_: Request, error: Exception) -> Response:
    """A parameter that is none."""
    assert isinstance(error, RequestValidationError)
    said = "; ".join(f"{' '.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors())
    return Response(failure(ConfigError(said, "See /docs.")), 400, media_type="application/json")


def _plain(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = failure(ConfigError(str(error.detail), ""))
    return Response(told, error.status_code, error.headers, media_type="application/json")


def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, DifferentialError)
    return Response(failure(error), _STATUS.get(type(error), 400), media_type="application/json")


class _Pages(StaticFiles):
    """Files of two folders: ``own`` first."""

    def __init__(self, directory: Path, own: Path | None) -> None:
        super().__init__(directory=directory, html=True)
        if own is not None:
            self.all_directories = [str(own), *self.all_directories]
