"""GET /metrics, for users who may read metrics: of the collections that they may read."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.serve.http.access_middleware import Readable
from dbt_incremental_dd.serve.http.listing import all_holds
from dbt_incremental_dd.serve.metrics import CollectionFacts, Metrics
from dbt_incremental_dd.serve.reader import Reader


def metrics_router(metrics: Metrics) -> APIRouter:
    """The route."""
    router = APIRouter()

    @router.get("/metrics", summary="Metrics of accesses and collections, in Prometheus' text format")
    def page(reader: Readable) -> Response:
        reader.usage.action = "metrics"
        if not reader.user.metrics:
            return JSONResponse({"error": "this user may not read metrics", "remedy": ""}, 403)
        return Response(metrics.text(_facts(reader), now()), media_type=metrics.content_type)

    return router


def _facts(reader: Reader) -> Iterator[CollectionFacts]:
    """The collections that are not damaged."""
    held = all_holds(reader)
    for collection in reader.database.collections():
        holds = held.get(collection.name, ())
        try:
            status = collection.status(holds)
        except DifferentialError:
            continue
        has_all = reader.has_all_rows(collection.name)
        yield CollectionFacts(
            collection.name,
            status.since,
            status.at,
            rows=status.rows if has_all else None,
            updates=status.updates if has_all else None,
            bytes=status.bytes if has_all else None,
            followers=reader.followers(collection.name),
            holds=[hold.at for hold in holds],
        )
