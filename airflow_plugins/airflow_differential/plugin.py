"""Airflow's plugin: the collections page, and its entry in the navigation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin


class DifferentialPlugin(AirflowPlugin):
    """Loaded by all of Airflow's processes; only the API server creates the page."""

    name = "differential"
    external_views: list[Any] = [  # noqa: RUF012
        {
            "name": "Collections",
            "href": "differential/",
            "url_route": "differential",
            "destination": "nav",
            "category": "browse",
        }
    ]

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
        """The page's application."""
        from airflow_differential.page import PREFIX, application

        return [{"app": application(), "url_prefix": PREFIX, "name": "Differential collections"}]
