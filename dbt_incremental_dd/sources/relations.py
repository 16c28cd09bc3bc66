"""What connectors of the catalog's relations have in common."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage


def check(spec: SourceSpec) -> None:
    """Raises ConfigError where a relation is read, and there is a path as well."""
    if spec.path is not None:
        raise ConfigError(
            f"source {spec.name}: connector {spec.connector} reads relation {spec.relation}, and path is {spec.path}",
            "Leave one of them out.",
        )


def sight(storage: Storage, spec: SourceSpec) -> None:
    """Only a run can tell: the catalog knows where a relation is."""


def look_every(spec: SourceSpec) -> float:
    """There is nothing to see."""
    return 0.0
