"""The HTTP application: routes for collections, their rows and changes, SELECTs, and pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, FastAPI, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi_offline import FastAPIOffline
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from dbt_incremental_dd.core.errors import (
    ConditionError,
    ConfigError,
    DifferentialError,
    FrontierError,
    QueryCanceled,
    QueryError,
    ServerBusy,
    StateError,
)
from dbt_incremental_dd.core.time import Time, parse_time
from dbt_incremental_dd.serve.gate import Gate
from dbt_incremental_dd.serve.http import listing, streams
from dbt_incremental_dd.serve.http.access import Access
from dbt_incremental_dd.serve.http.access_middleware import AccessMiddleware, Readable, recorder_of
from dbt_incremental_dd.serve.http.events import events_router
from dbt_incremental_dd.serve.http.messages import error_json
from dbt_incremental_dd.serve.http.metrics_page import metrics_router
from dbt_incremental_dd.serve.http.query_params import AsOf, Select, SubscribeQuery, Where
from dbt_incremental_dd.serve.http.query_results import BoundQuery, RowsResponse, rows_query
from dbt_incremental_dd.serve.http.vega import script
from dbt_incremental_dd.serve.metrics import Metrics
from dbt_incremental_dd.serve.recorder import Recorder
from dbt_incremental_dd.serve.sender import Refused
from dbt_incremental_dd.version import version

_STATIC = Path(__file__).parent.parent / "static"
_STATUS: dict[type[DifferentialError], int] = {
    **{FrontierError: 410, ConfigError: 400, QueryError: 400, StateError: 404},
    **{QueryCanceled: 408, ServerBusy: 503, ConditionError: 500},
}
_STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_NOT_COLUMNS = {"select", "where", "as_of", "limit", "token"}
Recording = Annotated[Recorder, Depends(recorder_of)]
Limit = Annotated[int, Query(ge=1, le=2**31 - 1, description="rows at most")]


def application(gate: Gate, access: Access, pages: Path | None = None, metrics: Metrics | None = None) -> FastAPI:
    """``pages``: a folder served at ``/``, before the server's own pages. ``metrics``: served at ``/metrics``."""
    app = FastAPIOffline(title="Differential collections", version=version, docs_url="/docs", redoc_url=None)
    app.include_router(_router())
    app.include_router(events_router())
    if metrics is not None:
        app.include_router(metrics_router(metrics))
    app.add_exception_handler(DifferentialError, _error_response)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(AccessMiddleware, access=access, gate=gate)
    if access.origins:
        # Browsers send a preflight request without the token before a page of another site may read.
        app.add_middleware(
            CORSMiddleware, allow_origins=access.origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    app.mount("/", _StaticPages(_STATIC, pages))
    return app


def _router() -> APIRouter:
    router = APIRouter()

    @router.get("/collections", summary="All collections with their frontiers")
    def collections(reader: Readable) -> list[dict[str, Any]]:
        reader.usage.action = "list"
        return listing.describe_all(reader)

    @router.get("/frontiers", summary="The same as server-sent events: all, and then each that changes")
    async def frontiers(reader: Readable) -> StreamingResponse:
        reader.usage.action = "frontiers"
        return StreamingResponse(listing.changes(reader), media_type="text/event-stream", headers=_STREAM)

    @router.get("/collections/{name}", summary="One collection")
    def collection(reader: Readable, name: str) -> dict[str, Any]:
        reader.usage.action = "describe"
        return listing.describe(reader, reader.find(name))

    @router.get("/collections/{name}/rows", summary="Its rows now, or as of a time; `?column=value` for some of them")
    async def rows(
        *,
        request: Request,
        reader: Readable,
        name: str,
        select: Select = None,
        where: Where = None,
        as_of: AsOf = None,
        limit: Limit = 1000,
    ) -> Response:
        reader.usage.action = "rows"
        found = await run_in_threadpool(reader.find, name)
        equal = {column: value for column, value in request.query_params.items() if column not in _NOT_COLUMNS}
        sql, values = rows_query(found, select, where, equal)
        return RowsResponse(reader, BoundQuery(sql, values, _time(as_of), limit))

    @router.post("/sql", summary="The rows of a SELECT over collections, all read as of one time")
    async def sql(
        reader: Readable, statement: Annotated[str, Body(embed=True)], as_of: AsOf = None, limit: Limit = 1000
    ) -> Response:
        reader.usage.action = "sql"
        return RowsResponse(reader, BoundQuery(statement, (), _time(as_of), limit))

    @router.get("/collections/{name}/changes", summary="Its rows, and then every change, as server-sent events")
    async def changes(reader: Readable, recorder: Recording, name: str, params: SubscribeQuery) -> Response:
        reader.usage.action = "subscribe"
        found = await reader.run(reader.find, name)
        recorder.began(reader.usage)
        return await _stream(streams.event_stream(reader, found, params))

    @router.websocket("/collections/{name}/changes")
    async def changes_socket(
        web: WebSocket, reader: Readable, recorder: Recording, name: str, params: SubscribeQuery
    ) -> None:
        reader.usage.action = "subscribe"
        await web.accept()
        try:
            found = await reader.run(reader.find, name)
        except DifferentialError as error:
            await streams.refuse(web, error_json(error))
            return
        recorder.began(reader.usage)
        await streams.serve_socket(reader, found, params, web)

    @router.get("/assets/vega.js", include_in_schema=False)
    def vega() -> Response:
        return Response(script(), media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    @router.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        """Browsers request it for every page."""
        return FileResponse(_STATIC / "icon.svg", media_type="image/svg+xml")

    return router


def _time(as_of: str | None) -> Time | None:
    return None if as_of is None else parse_time(as_of)


async def _stream(events: AsyncGenerator[bytes]) -> Response:
    """Waits for the first event, so that errors in the request still set the response's status."""
    return _EventsResponse(await anext(events), events)


class _EventsResponse(StreamingResponse):
    """Closes the subscription as soon as the client disconnects or is disconnected."""

    def __init__(self, first: bytes, events: AsyncGenerator[bytes]) -> None:
        async def body() -> AsyncIterator[bytes]:
            yield first
            async for event in events:
                yield event

        super().__init__(body(), media_type="text/event-stream", headers=_STREAM)
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()


def _validation_error(_: Request, error: Exception) -> Response:
    """An invalid parameter, as status 400."""
    assert isinstance(error, RequestValidationError)
    reasons = "; ".join(f"{' '.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors())
    return Response(error_json(ConfigError(reasons, "See /docs.")), 400, media_type="application/json")


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = error_json(ConfigError(str(error.detail), ""))
    return Response(body, error.status_code, error.headers, media_type="application/json")


def _error_response(_: Request, error: Exception) -> Response:
    assert isinstance(error, DifferentialError)
    if isinstance(error, Refused):
        later = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return Response(error_json(error), error.status, later, media_type="application/json")
    return Response(error_json(error), _STATUS.get(type(error), 400), media_type="application/json")


class _StaticPages(StaticFiles):
    """Files of two folders: ``own`` takes precedence."""

    def __init__(self, directory: Path, own: Path | None) -> None:
        super().__init__(directory=directory, html=True)
        if own is not None:
            self.all_directories = [str(own), *self.all_directories]
