"""The collections page in Airflow's UI: an application under ``/differential``, behind Airflow's login.

It reads collections' logs, without Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from airflow.configuration import conf
from fastapi import APIRouter, Depends, FastAPI, HTTPException
from fastapi.staticfiles import StaticFiles

from airflow_differential import collections

PREFIX = "/differential"
_STATIC = Path(__file__).parent / "static"


def application() -> FastAPI:
    """The page and its routes. Whoever may see Airflow's UI may see it."""
    app = FastAPI(title="Differential collections", docs_url=None, redoc_url=None, openapi_url=None)
    routes = APIRouter(dependencies=[Depends(requires_access_view(AccessView.WEBSITE))])
    routes.get("/collections")(_collections)
    routes.get("/history")(_history)
    app.include_router(routes)
    app.mount("/", StaticFiles(directory=_STATIC, html=True))
    return app


def state_roots() -> list[str]:
    """The comma-separated setting ``state_roots`` in section ``differential``."""
    return [root.strip() for root in conf.get("differential", "state_roots", fallback="").split(",") if root.strip()]


def _collections() -> list[dict[str, Any]]:
    """Each state root with its collections, or with its ``error``."""
    return [_root(root) for root in state_roots()]


def _root(root: str) -> dict[str, Any]:
    try:
        return {"state_root": root, "collections": collections.overview(root)}
    except Exception as error:
        return {"state_root": root, "collections": [], "error": f"{type(error).__name__}: {error}"}


def _history(state_root: str, collection: str, latest: int = 200) -> list[dict[str, Any]]:
    """A collection's last ``latest`` commits, oldest first. Status 404 for an unknown state root."""
    if state_root not in state_roots():
        raise HTTPException(404, f"{state_root} is not among the state roots of Airflow's settings.")
    return collections.history(state_root, collection, min(latest, 1000))
