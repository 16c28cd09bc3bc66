"""The ways in which sources are reached, by the name that the setting ``connector`` has for them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.connectors.files import connector as files
from dbt_incremental_dd.sources.connectors.kafka import connector as kafka
from dbt_incremental_dd.sources.connectors.lake import delta, iceberg
from dbt_incremental_dd.sources.connectors.postgres import connector as postgres
from dbt_incremental_dd.sources.connectors.table import connector as table
from dbt_incremental_dd.sources.poll import Visit
from dbt_incremental_dd.sources.poll_result import Arrival
from dbt_incremental_dd.trace.layout import Storage


class Connector(Protocol):
    """A module of these functions. What it needs beyond this package's requirements it imports where it is used."""

    def check(self, spec: SourceSpec) -> None:
        """Raises ConfigError for settings that the connector cannot honour."""

    def arrivals(self, visit: Visit) -> Arrival | None:
        """What is new of the source; None where nothing is. Raises SourceError, naming the source."""

    def sight(self, storage: Storage, spec: SourceSpec) -> Hashable | None:
        """What the source looks like, as ``sight.sight`` says; cheap, and without Spark."""

    def look_every(self, spec: SourceSpec) -> float:
        """Seconds between looks."""


_CONNECTORS: Mapping[str, Connector] = {
    "files": files,
    "delta": delta,
    "iceberg": iceberg,
    "table": table,
    "kafka": kafka,
    "postgres": postgres,
}


def connector_of(spec: SourceSpec) -> Connector:
    """The source's connector."""
    return _CONNECTORS[spec.connector]
