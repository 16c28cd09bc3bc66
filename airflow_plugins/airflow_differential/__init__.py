"""Airflow for differential models: sensors advance frontiers, operators run and compact models, assets report changes.

Importing this package needs neither Spark nor dbt; what reads collections imports the engine when it runs.
"""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The provider's entry in Airflow's list."""
    return {
        "package-name": "dbt-incremental-dd",
        "name": "Differential models",
        "description": "Sensors, operators and assets for dbt models with materialized='differential'.",
        "integrations": [
            {
                "integration-name": "dbt-incremental-dd",
                "external-doc-url": "https://github.com/dbt-incremental-dd/dbt-incremental-dd",
                "tags": ["software"],
            }
        ],
    }
